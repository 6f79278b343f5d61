// Shifts as a saved state: see shift.h.
#include "runtime/adapt/shift.h"

namespace reflex::adapt {

void save_shifts(StateWriter& writer, const std::vector<Shift>& shifts) {
  writer.u64(shifts.size());
  for (const Shift& shift : shifts) {
    writer.u64(shift.hw_class);
    writer.text(shift.what);
    writer.i64(shift.at_ns);
    writer.f64(shift.factor);
  }
}

std::vector<Shift> load_shifts(StateReader& reader, const abi::LoadNames& names) {
  std::vector<Shift> shifts;
  for (size_t left = reader.count(11); left > 0 && !reader.failed(); --left) {
    const uint32_t hw_class = names.hw_class(reader);
    Shift shift;
    shift.what = reader.text();
    shift.at_ns = reader.i64();
    shift.factor = reader.f64();
    if (hw_class == abi::LoadNames::kGone) continue;
    shift.hw_class = static_cast<abi::ClassId>(hw_class);
    shifts.push_back(std::move(shift));
  }
  return shifts;
}

}  // namespace reflex::adapt
