#include "pjrt/extensions.h"

namespace tokamak {

PJRT_Extension_Base* Extensions() {
  return nullptr;
}

}  // namespace tokamak
