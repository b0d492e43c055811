// What a message must obey beyond its encoding: which fields go with which.
#pragma once

#include <string_view>

#include "wire/messages.h"

namespace bulkhead::wire {

// Why a message is illegal beyond its encoding ("" if legal); checked when encoding and when
// decoding.
std::string_view ProblemOf(const Hello& message);
std::string_view ProblemOf(const Execute& message);
std::string_view ProblemOf(const Cancel& message);
std::string_view ProblemOf(const HelloAck& message);
std::string_view ProblemOf(const Ready& message);
std::string_view ProblemOf(const Started& message);
std::string_view ProblemOf(const Trace& message);
std::string_view ProblemOf(const Terminal& message);

}  // namespace bulkhead::wire
