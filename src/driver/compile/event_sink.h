#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tokamak {

// Receiver of compile and run events as JSON (<tokamak/c_api.h>, tok_set_report). None by default.
using EventFn = void (*)(const char* json, void* user);
void SetEventSink(EventFn fn, void* user);
// Cheap: check this before building an event.
bool HasEventSink();
// Strings may contain arbitrary bytes; invalid UTF-8 is replaced.
void EmitEvent(const nlohmann::json& event);

}  // namespace tokamak
