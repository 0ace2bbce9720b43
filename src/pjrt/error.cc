#include "pjrt/error.h"

#include <memory>

#include "pjrt/slots.h"

namespace tokamak {
namespace {

struct StatusName {
  std::string_view name;
  PJRT_Error_Code code;
};
constexpr StatusName kStatusNames[] = {
    {"CANCELLED", PJRT_Error_Code_CANCELLED},
    {"INVALID_ARGUMENT", PJRT_Error_Code_INVALID_ARGUMENT},
    {"NOT_FOUND", PJRT_Error_Code_NOT_FOUND},
    {"RESOURCE_EXHAUSTED", PJRT_Error_Code_RESOURCE_EXHAUSTED},
    {"FAILED_PRECONDITION", PJRT_Error_Code_FAILED_PRECONDITION},
    {"ABORTED", PJRT_Error_Code_ABORTED},
    {"OUT_OF_RANGE", PJRT_Error_Code_OUT_OF_RANGE},
    {"UNIMPLEMENTED", PJRT_Error_Code_UNIMPLEMENTED},
    {"INTERNAL", PJRT_Error_Code_INTERNAL},
    {"UNAVAILABLE", PJRT_Error_Code_UNAVAILABLE},
};

void DestroyError(PJRT_Error* error) {
  delete error;
}

void MessageOf(const PJRT_Error* error, const char** message, size_t* size) {
  *message = error->message.c_str();
  *size = error->message.size();
}

PJRT_Error_Code CodeOf(const PJRT_Error* error) {
  return error->code;
}

void NoPayload(const PJRT_Error*, PJRT_Error_PayloadVisitor, void*) {}

constexpr PJRT_Error_FunctionTable kErrorTable = {
    .struct_size = kStructSize<PJRT_Error_FunctionTable>,
    .instance_size = sizeof(PJRT_Error),
    .extension_start = nullptr,
    .destroy = DestroyError,
    .message = MessageOf,
    .get_code = CodeOf,
    .for_each_payload = NoPayload,
};

// Errors reported by the caller keep their status in the first note.
constexpr std::string_view kCallerStatus = "status ";

}  // namespace

PJRT_Error_Code StatusOf(ErrorCode code) {
  std::string_view status = InfoOf(code).status;
  for (const StatusName& row : kStatusNames)
    if (row.name == status) return row.code;
  return PJRT_Error_Code_UNKNOWN;
}

PJRT_Error* Fail(const Error& error) {
  PJRT_Error_Code code = StatusOf(error.code);
  std::string message;
  if (error.code == ErrorCode::kReportedFromOutside && !error.notes.empty()) {
    code = static_cast<PJRT_Error_Code>(std::stoi(error.notes[0].substr(kCallerStatus.size())));
    message = error.message;
  } else {
    message = Render(error);
    while (!message.empty() && message.back() == '\n') message.pop_back();
  }
  return new PJRT_Error{&kErrorTable, code, std::move(message)};
}

PJRT_Error* Fail(ErrorCode code, std::string message) {
  return Fail(MakeError(code, std::move(message)));
}

PJRT_Error* Fail(const SharedError& error) {
  return error == nullptr ? nullptr : Fail(*error);
}

SharedError ErrorFromCaller(PJRT_Error_Code code, const char* message, size_t size) {
  Error error = MakeError(ErrorCode::kReportedFromOutside,
                          message == nullptr ? std::string() : std::string(message, size));
  error.notes.push_back(std::string(kCallerStatus) + std::to_string(static_cast<int>(code)));
  return std::make_shared<const Error>(std::move(error));
}

void PJRT_Error_Destroy(PJRT_Error_Destroy_Args& args) {
  delete args.error;
}

void PJRT_Error_Message(PJRT_Error_Message_Args& args) {
  MessageOf(args.error, &args.message, &args.message_size);
}

PJRT_Error* PJRT_Error_GetCode(PJRT_Error_GetCode_Args& args) {
  args.code = args.error->code;
  return nullptr;
}

PJRT_Error* PJRT_Error_ForEachPayload(PJRT_Error_ForEachPayload_Args&) {
  return nullptr;
}

}  // namespace tokamak
