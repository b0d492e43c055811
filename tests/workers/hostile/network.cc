// Attempts to reach anything over a network or a socket.
#include <asm/unistd.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "hostile/attempts.h"
#include "process/raw_call.h"

namespace bulkhead::hostile {
namespace {

using process::Call;

constexpr int kChannel = 3;
constexpr unsigned kLoopback = 0x7F000001;
// Families that a C library need not know.
constexpr int kNetlink = 16;
constexpr int kPacket = 17;
constexpr int kAlgorithm = 38;
constexpr int kVsock = 40;
constexpr int kXdp = 44;

sockaddr_in Loopback(unsigned short port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(kLoopback);
  return address;
}

long ConnectTcp(const Target& target) {
  const long fd = Call(__NR_socket, AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Loopback(target.tcp_port);
  return fd < 0 ? fd : Call(__NR_connect, fd, &address, sizeof address);
}

sockaddr_un PathAddress(const Target& target) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, target.socket_path, sizeof address.sun_path - 1);
  return address;
}

long ConnectUnix(const Target& target) {
  const long fd = Call(__NR_socket, AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = PathAddress(target);
  return fd < 0 ? fd : Call(__NR_connect, fd, &address, sizeof address);
}

long BindAbstract(const Target& /*target*/) {
  const long fd = Call(__NR_socket, AF_UNIX, SOCK_DGRAM, 0);
  const sockaddr_un address = {AF_UNIX, "\0bulkhead-hostile"};
  return fd < 0 ? fd : Call(__NR_bind, fd, &address, sizeof address);
}

// The one socket it has, used to speak to another.
long SendElsewhere(const Target& target) {
  sockaddr_un address = PathAddress(target);
  char byte = 'x';
  iovec part = {&byte, 1};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return Call(__NR_sendmsg, kChannel, &message, 0);
}

template <int family, int type, int protocol>
long Open(const Target& /*target*/) {
  return Call(__NR_socket, family, type, protocol);
}

const Attempt kRows[] = {
    {"tcp to a listener of the host", kKilled, ConnectTcp},
    {"udp", kKilled, Open<AF_INET, SOCK_DGRAM, 0>},
    {"tcp over ipv6", kKilled, Open<AF_INET6, SOCK_STREAM, 0>},
    {"udp over ipv6", kKilled, Open<AF_INET6, SOCK_DGRAM, 0>},
    {"raw icmp", kKilled, Open<AF_INET, SOCK_RAW, IPPROTO_ICMP>},
    {"ping socket", kKilled, Open<AF_INET, SOCK_DGRAM, IPPROTO_ICMP>},
    {"unix socket by path", kKilled, ConnectUnix},
    {"abstract unix socket", kKilled, BindAbstract},
    {"netlink", kKilled, Open<kNetlink, SOCK_RAW, 0>},
    {"packet", kKilled, Open<kPacket, SOCK_RAW, 0>},
    {"vsock", kKilled, Open<kVsock, SOCK_STREAM, 0>},
    {"kernel cryptography", kKilled, Open<kAlgorithm, SOCK_SEQPACKET, 0>},
    {"xdp", kKilled, Open<kXdp, SOCK_RAW, 0>},
    {"socketpair", kKilled,
     [](const Target&) {
       int pair[2];
       return Call(__NR_socketpair, AF_UNIX, SOCK_STREAM, 0, pair);
     }},
    {"connect by a held socket", kKilled,
     [](const Target& target) {
       const sockaddr_un address = PathAddress(target);
       return Call(__NR_connect, kChannel, &address, sizeof address);
     }},
    {"listen on a held socket", kKilled,
     [](const Target&) { return Call(__NR_listen, kChannel, 1); }},
    {"accept on a held socket", kKilled,
     [](const Target&) { return Call(__NR_accept4, kChannel, 0, 0, 0); }},
    {"message elsewhere by a held socket", EISCONN, SendElsewhere},
    {"sendto", ENOSYS,
     [](const Target& target) {
       const sockaddr_in address = Loopback(target.tcp_port);
       return Call(__NR_sendto, kChannel, "x", 1, 0, &address, sizeof address);
     }},
    {"options of a held socket", ENOSYS,
     [](const Target&) {
       const int on = 1;
       return Call(__NR_setsockopt, kChannel, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
     }},
    {"name of the peer", ENOSYS,
     [](const Target&) {
       sockaddr_un address{};
       socklen_t bytes = sizeof address;
       return Call(__NR_getpeername, kChannel, &address, &bytes);
     }},
    {"io_uring", kKilled,
     [](const Target&) {
       char parameters[120] = {};
       return Call(__NR_io_uring_setup, 8, parameters);
     }},
    {"io_uring of a held descriptor", kKilled,
     [](const Target&) { return Call(__NR_io_uring_enter, kChannel, 1, 0, 0, 0, 0); }},
    {"io_uring registration", kKilled,
     [](const Target&) { return Call(__NR_io_uring_register, kChannel, 0, 0, 0); }},
};

}  // namespace

const AttemptTable kNetwork = {kRows, sizeof kRows / sizeof kRows[0]};

}  // namespace bulkhead::hostile
