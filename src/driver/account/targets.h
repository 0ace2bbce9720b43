#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "driver/account/account.h"

namespace tokamak {

// Where a program is faster: on this CPU, or on a GPU to which its arguments and from which its
// results must be brought, or where they are already.
struct Places {
  Totals host, gpu;
  int64_t transferred = 0;  // bytes, there and back
  double transfer_us = 0;
  std::string link;  // what that is from
  // How many times larger (or smaller) its arrays must be for the other to be faster, all kernels'
  // work scaled; nothing: at no size that was looked at.
  std::optional<double> turns_with_transfers, turns_without;
  // The first dimension of more than half of the arguments, to say it in those terms; 0: none.
  int64_t batch = 0;
};

Places PlacesOf(const Module& module, const ProgramAccount& host, const ProgramAccount& gpu);
std::string TextOf(const Places& places);
nlohmann::json JsonOf(const Places& places);

}  // namespace tokamak
