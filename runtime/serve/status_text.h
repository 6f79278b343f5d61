// What a daemon is doing, for people: the answer to SIGUSR1.
#pragma once

#include <string>

#include "runtime/serve/port.h"

namespace reflex::serve {

std::string status_text(const Status& status);

}  // namespace reflex::serve
