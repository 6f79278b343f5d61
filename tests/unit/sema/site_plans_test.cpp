// Plans of what a site says about its life and its classes: cohorts, repairs, maintenance,
// suppressions, masks, synergies, scopes by label, adaptive parameters.
#include <cstring>

#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHour = 3600 * kSecond;

#define COMPILED(out, text)                        \
  const auto out = compile_pack(text);             \
  ASSERT_NE(out->pack, nullptr) << rendered(*out); \
  const abi::CompiledPack& pack = *out->pack

TEST(SitePlans, statements_about_the_site) {
  COMPILED(out, R"(
    event ops.driver { key node: node  version: word }
    event ops.window_open { key node: node }
    event ops.window_close { key node: node }
    event ops.swap { key node: node }
    signal hot on (node, gpu) { when gpu.temp.value > 90 celsius }
    incident i on node { opens on hot }
    cohort from event ops.driver by version on node
    repair from event ops.swap on node
    maintenance from event ops.window_open until ops.window_close on node grace 15m
    hot explained by maintenance on node
    suppress lab { signals hot  where label(node, site) == "lab"  until 2027-03-31
                   reason "burn-in racks" })");
  const auto kind = [&](abi::KindId id) { return pack.kinds[id].name; };
  ASSERT_EQ(pack.cohorts.size(), 1u);
  EXPECT_EQ(kind(pack.cohorts[0].kind), "ops.driver");
  EXPECT_EQ(pack.cohorts[0].node_slot, 0);
  EXPECT_EQ(pack.cohorts[0].value_slot, 1);
  ASSERT_EQ(pack.repairs.size(), 1u);
  EXPECT_EQ(kind(pack.repairs[0].kind), "ops.swap");
  ASSERT_EQ(pack.maintenance.size(), 1u);
  EXPECT_EQ(kind(pack.maintenance[0].from), "ops.window_open");
  EXPECT_EQ(kind(pack.maintenance[0].until), "ops.window_close");
  EXPECT_EQ(pack.maintenance[0].grace_ns, 900 * kSecond);
  ASSERT_EQ(pack.explained_by_maintenance.size(), 1u);
  EXPECT_EQ(pack.signals[pack.explained_by_maintenance[0].signal].name, "t.hot");
  ASSERT_EQ(pack.suppressions.size(), 1u);
  const abi::SuppressPlan& lab = pack.suppressions[0];
  EXPECT_EQ(lab.name, "t.lab");
  EXPECT_EQ(lab.reason, "burn-in racks");
  ASSERT_EQ(lab.signals.size(), 1u);
  EXPECT_EQ(lab.until_ns, 1'806'451'200 * kSecond);  // 2027-03-31T00:00:00Z
  EXPECT_NE(ir_text(*out, lab.where).find("label"), std::string::npos) << ir_text(*out, lab.where);
}

TEST(SitePlans, masks_synergies_and_edges_from_the_effect) {
  COMPILED(out, R"(
    signal flap on (node, nic) { e: nic.state where not e.up }
    signal xid on node { e: gpu.xid }
    signal ecc on node { e: gpu.ecc }
    external tor_switch on tor { prior 1e-5 per hour }
    fault gpu_memory on node { prior 1e-4 per job }
    tor_switch causes flap p 0.6 lag 0s .. 2m scope tor learn
    tor_switch masks flap, ecc lag -10s .. 5m when at least 25% of members in 90s
    gpu_memory causes xid p 0.6
    ecc explained by gpu_memory p 0.3 lag -24h .. 1h
    synergy gpu_memory from xid and ecc weight 1.5 nats)");
  ASSERT_EQ(pack.masks.size(), 1u);
  const abi::MaskPlan& mask = pack.masks[0];
  EXPECT_EQ(pack.causes[mask.cause].name, "t.tor_switch");
  ASSERT_EQ(mask.signals.size(), 2u);
  EXPECT_EQ(pack.signals[mask.signals[0]].name, "t.flap");
  EXPECT_EQ(mask.lag_lo_ns, -10 * kSecond);
  EXPECT_EQ(mask.lag_hi_ns, 300 * kSecond);
  EXPECT_DOUBLE_EQ(mask.at_least, 0.25);
  EXPECT_EQ(mask.within_ns, 90 * kSecond);
  ASSERT_EQ(pack.edges.size(), 3u);
  const abi::EdgePlan& written_back = pack.edges[2];
  EXPECT_EQ(pack.causes[written_back.cause].name, "t.gpu_memory");
  EXPECT_EQ(pack.signals[written_back.to].name, "t.ecc");
  EXPECT_DOUBLE_EQ(written_back.p, 0.3);
  EXPECT_EQ(written_back.lag_lo_ns, -24 * kHour);
  ASSERT_EQ(pack.synergies.size(), 1u);
  EXPECT_EQ(pack.synergies[0].signals.size(), 2u);
  EXPECT_DOUBLE_EQ(pack.synergies[0].weight_nats, 1.5);
}

TEST(SitePlans, scopes_by_label_and_class) {
  COMPILED(out, R"(
    signal s on node { e: gpu.xid }
    fault f on node { prior 1e-4 per job }
    external bad_pod on pod { prior 1e-5 per hour }
    external app_rank on node { prior 1e-4 per job }
    f causes s p 0.1 scope pod
    f causes s p 0.1 scope zone
    f causes s p 0.1 scope class
    bad_pod causes s p 0.1 scope pod
    app_rank causes s p 0.1)");
  ASSERT_EQ(pack.edges.size(), 5u);
  EXPECT_EQ(pack.edges[0].scope, abi::Scope::kPod);
  EXPECT_EQ(pack.edges[1].scope, abi::Scope::kZone);
  EXPECT_EQ(pack.edges[2].scope, abi::Scope::kClass);
  EXPECT_EQ(pack.causes[pack.edges[4].cause].kind, abi::CauseKind::kExternal);
}

TEST(SitePlans, adaptive_parameters_by_class) {
  COMPILED(out, R"(
    feature throttle_rate on node = rate(gpu.throttle, 6h)
    profile hw.base abstract {
      adaptive throttle_limit: per<hour> { from throttle_rate quantile 0.999 over 7d  default 3
                                           floor 1  ceiling 30  min_samples 500 }
    }
    profile hw.h100 extends hw.base { throttle_limit { quantile 0.9995  default 5 per hour } }
    profile hw.unknown extends hw.base fallback { }
    signal busy on node { when throttle_rate > profile.throttle_limit }
    incident i on node { opens on busy })");
  ASSERT_EQ(pack.adaptives.size(), 1u);
  EXPECT_EQ(pack.adaptives[0].name, "throttle_limit");
  EXPECT_EQ(pack.features[pack.adaptives[0].feature].name, "t.throttle_rate");
  const uint32_t param = pack.adaptives[0].param;
  EXPECT_EQ(pack.params[param].name, "throttle_limit");
  for (const abi::ClassPlan& c : pack.classes) {
    ASSERT_EQ(c.adaptive.size(), 1u);
    const bool h100 = c.name == "hw.h100";
    const abi::AdaptiveSettings& a = c.adaptive[0];
    EXPECT_DOUBLE_EQ(a.quantile, h100 ? 0.9995 : 0.999);
    EXPECT_DOUBLE_EQ(a.initial, (h100 ? 5 : 3) / 3600.0);  // per second inside
    EXPECT_DOUBLE_EQ(a.floor, 1 / 3600.0);
    EXPECT_DOUBLE_EQ(a.ceiling, 30 / 3600.0);
    EXPECT_EQ(a.window_ns, 7 * 24 * kHour);
    EXPECT_EQ(a.min_samples, 500u);
    double known = 0;
    std::memcpy(&known, &c.params[param], sizeof known);
    EXPECT_DOUBLE_EQ(known, a.initial);
    EXPECT_EQ(c.params_known[param], 1);
  }
  const abi::SignalPlan& s = signal(pack, "t.busy");
  EXPECT_EQ(s.condition.limit_adaptive, 0u);
  EXPECT_NE(s.condition.limit_origin.find("profile.throttle_limit"), std::string::npos);
  EXPECT_TRUE(pack.exprs[s.condition.when].reads_class);
  EXPECT_NE(ir_text(*out, s.condition.when).find("table"), std::string::npos)
      << ir_text(*out, s.condition.when);
}

TEST(SitePlans, an_adaptive_limit_without_floor_is_open_below) {
  COMPILED(out, R"(
    feature f on node = rate(gpu.throttle, 6h)
    profile hw.a fallback { adaptive limit: per<hour> { from f over 7d default 3 ceiling 30 } }
    signal s on node { when f > profile.limit } incident i on node { opens on s })");
  EXPECT_LT(pack.classes[0].adaptive[0].floor, -1e300);
  EXPECT_DOUBLE_EQ(pack.classes[0].adaptive[0].ceiling, 30 / 3600.0);
}

}  // namespace
}  // namespace reflex::test
