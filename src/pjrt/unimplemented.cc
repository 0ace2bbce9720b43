// The slots that return UNIMPLEMENTED. docs/pjrt.md gives the reasons; pjrt_abi.json permits each.

#include "pjrt/slots.h"

namespace tokamak {

#define TOK_UNIMPLEMENTED(name)                                                 \
  PJRT_Error* name(name##_Args&) {                                              \
    return Fail(ErrorCode::kSlotMissing, "pjrt: " #name " is not implemented"); \
  }
TOK_UNIMPLEMENTED(PJRT_CopyToDeviceStream_Destroy)
TOK_UNIMPLEMENTED(PJRT_CopyToDeviceStream_AddChunk)
TOK_UNIMPLEMENTED(PJRT_CopyToDeviceStream_TotalBytes)
TOK_UNIMPLEMENTED(PJRT_CopyToDeviceStream_GranuleSize)
TOK_UNIMPLEMENTED(PJRT_CopyToDeviceStream_CurrentBytes)
TOK_UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_Destroy)
TOK_UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_TransferData)
TOK_UNIMPLEMENTED(PJRT_Client_CreateBuffersForAsyncHostToDevice)
TOK_UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer)
TOK_UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_Device)
TOK_UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_BufferCount)
TOK_UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_BufferSize)
TOK_UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_SetBufferError)
TOK_UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_AddMetadata)
TOK_UNIMPLEMENTED(PJRT_Client_CreateAliasBuffer)
TOK_UNIMPLEMENTED(PJRT_Client_FulfillAliasBuffer)
TOK_UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral)
TOK_UNIMPLEMENTED(PJRT_Buffer_CopyRawToHostFuture)
TOK_UNIMPLEMENTED(PJRT_Buffer_DonateWithControlDependency)
TOK_UNIMPLEMENTED(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace)
#undef TOK_UNIMPLEMENTED

}  // namespace tokamak
