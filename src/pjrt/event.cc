// PJRT_Event* is one reference to an Event.

#include "runtime/event.h"

#include "pjrt/event.h"
#include "pjrt/slots.h"

namespace tokamak {

PJRT_Event* ReturnEvent(Ref<Event> event) {
  return reinterpret_cast<PJRT_Event*>(event.Detach());
}

Event& EventOf(PJRT_Event* event) {
  return *reinterpret_cast<Event*>(event);
}

PJRT_Error* PJRT_Event_Destroy(PJRT_Event_Destroy_Args& args) {
  if (args.event != nullptr) EventOf(args.event).Release();
  return nullptr;
}

PJRT_Error* PJRT_Event_IsReady(PJRT_Event_IsReady_Args& args) {
  args.is_ready = EventOf(args.event).HasFired();
  return nullptr;
}

PJRT_Error* PJRT_Event_Error(PJRT_Event_Error_Args& args) {
  const SharedError* error = EventOf(args.event).error();
  return error == nullptr ? nullptr : Fail(*error);
}

PJRT_Error* PJRT_Event_Await(PJRT_Event_Await_Args& args) {
  Event& event = EventOf(args.event);
  event.Wait();
  const SharedError* error = event.error();
  return error == nullptr ? nullptr : Fail(*error);
}

PJRT_Error* PJRT_Event_OnReady(PJRT_Event_OnReady_Args& args) {
  EventOf(args.event)
      .Then([callback = args.callback, user = args.user_arg](const SharedError& error) {
        callback(Fail(error), user);
      });
  return nullptr;
}

PJRT_Error* PJRT_Event_Create(PJRT_Event_Create_Args& args) {
  args.event = ReturnEvent(MakeRef<Event>());
  return nullptr;
}

PJRT_Error* PJRT_Event_Set(PJRT_Event_Set_Args& args) {
  SharedError error;
  if (args.error_code != PJRT_Error_Code_OK)
    error = ErrorFromCaller(args.error_code, args.error_message, args.error_message_size);
  if (EventOf(args.event).Fire(std::move(error))) return nullptr;
  return Fail(ErrorCode::kExecuteArguments, "event: it was set before");
}

}  // namespace tokamak
