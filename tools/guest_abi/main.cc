// Writes what is derived from the guest contract:  guest_abi_writer header|document
#include <iostream>
#include <string_view>

#include "contract/guest_abi_text.h"

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what == "header") {
    std::cout << bulkhead::contract::GuestHeader();
  } else if (what == "document") {
    std::cout << bulkhead::contract::GuestDocument();
  } else {
    std::cerr << "usage: guest_abi_writer header|document\n";
    return 2;
  }
  return std::cout.flush() ? 0 : 1;
}
