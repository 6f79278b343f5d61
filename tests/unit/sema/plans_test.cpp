// Plans of representative constructs: sequences, counts, conditions, features, profiles, edges.
#include <cstring>

#include "tests/unit/sema/support.h"

namespace reflex::test {
namespace {

using abi::kNone32;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kHour = 3600 * kSecond;

#define COMPILED(out, text)                        \
  const auto out = compile_pack(text);             \
  ASSERT_NE(out->pack, nullptr) << rendered(*out); \
  const abi::CompiledPack& pack = *out->pack

TEST(Plans, builtin_kinds_come_first) {
  COMPILED(out, "");
  ASSERT_GT(pack.kinds.size(), size_t{abi::kBuiltinKindCount});
  EXPECT_EQ(pack.kinds[abi::kNodeLabels].name, "node.labels");
  EXPECT_EQ(pack.kinds[abi::kJobNodes].name, "job.nodes");
  EXPECT_EQ(pack.kinds[abi::kGpuReplaced].name, "gpu.replaced");
  EXPECT_EQ(pack.kinds[abi::kIncidentOpen].name, "incident.open");
  EXPECT_EQ(pack.classes.size(), 1u);
  EXPECT_EQ(pack.classes[0].name, "default");
  for (const auto& k : pack.kinds) EXPECT_NE(k.name, "gpu.base");
}

TEST(Plans, kind_inherits_fields_and_dedup) {
  COMPILED(out, "");
  for (const auto& k : pack.kinds) {
    if (k.name != "gpu.xid") continue;
    ASSERT_EQ(k.fields.size(), 6u);
    EXPECT_EQ(k.fields[0].name, "node");
    EXPECT_TRUE(k.fields[0].is_key);
    EXPECT_TRUE(k.fields[1].type.gpu_index);
    EXPECT_TRUE(k.fields[1].type.optional);
    EXPECT_EQ(k.fields[4].type.array_bound, 5);
    EXPECT_TRUE(k.fields[5].redact);
    EXPECT_EQ(k.dedup_slots, (std::vector<uint16_t>{0, 1, 2}));
    EXPECT_EQ(k.dedup_ns, 2 * kSecond);
    return;
  }
  FAIL();
}

TEST(Plans, sequence_with_macro_capture_and_unless) {
  COMPILED(out, R"(
    list xid_hw: set<u16> = [48, 63, 64, 74]
    macro hw_xid(e: gpu.xid) = e.code in xid_hw and not in_maintenance(e.node)
    signal hang on node within 90s {
      a: gpu.xid where hw_xid(a) and a.code == 74
      then strictly b: nccl.timeout where b.node == a.node and b.rank < 4
      unless c: nic.state where not c.up and c.node == a.node between a and b
      holds 10m
    } incident i on node { opens on hang })");
  const abi::SignalPlan& s = signal(pack, "t.hang");
  EXPECT_EQ(s.holds_ns, 600 * kSecond);
  EXPECT_EQ(s.leak_per_hour, 1e-3);
  EXPECT_EQ(s.horizon_ns, 90 * kSecond);
  EXPECT_FALSE(s.global_stage);
  const abi::SequencePlan& q = s.sequence;
  ASSERT_EQ(q.steps.size(), 2u);
  EXPECT_EQ(q.within_ns, 90 * kSecond);
  EXPECT_EQ(q.steps[1].mode, abi::StepMode::kThenStrictly);
  EXPECT_EQ(q.capture_count, 1);
  ASSERT_EQ(q.steps[0].captures.size(), 1u);
  EXPECT_EQ(q.steps[0].captures[0].slot, 0);  // a.node
  EXPECT_EQ(q.steps[0].join, kNone32);
  EXPECT_NE(q.steps[1].join, kNone32);
  EXPECT_TRUE(pack.exprs[q.steps[1].join].reads_captures);
  const abi::LeafPlan& a = pack.leaves[q.steps[0].leaf];
  EXPECT_EQ(constraints(a), "2:[74..74]");
  EXPECT_NE(a.residual, kNone32);  // in_maintenance is left
  EXPECT_NE(a.residual, a.predicate);
  const abi::LeafPlan& b = pack.leaves[q.steps[1].leaf];
  EXPECT_EQ(constraints(b), "2:[min..3]");
  EXPECT_EQ(b.residual, kNone32);
  ASSERT_EQ(b.owners.size(), 1u);
  EXPECT_EQ(b.owners[0].kind, abi::OwnerKind::kSequenceStep);
  EXPECT_EQ(b.owners[0].sub, 1);
  ASSERT_EQ(q.unless.size(), 1u);
  EXPECT_EQ(constraints(pack.leaves[q.unless[0].leaf]), "2:[0..0]");
  EXPECT_EQ(q.unless[0].after_step, 0);
  EXPECT_EQ(q.unless[0].before_step, 1);
  EXPECT_NE(q.unless[0].join, kNone32);
}

TEST(Plans, byte_rates_are_bytes_per_time) {
  COMPILED(out, R"(
    event dev.io { key node: node  total: byte/s  line: bit/s }
    signal a on node { e: dev.io where e.total > 1 B/s }
    signal b on node { e: dev.io where e.total > 2 kB/s }
    signal c on node { e: dev.io where e.total > 3 MB/s }
    signal d on node { e: dev.io where e.total > 4 GB/s }
    signal e on node { e: dev.io where e.total > 5 TB/s }
    signal f on node { e: dev.io where e.line > 6000 Mbit/s }
    signal g on node { e: dev.io where e.line > 6Gbps }
    signal h on node { e: dev.io where e.line > 6 Gbit/s }
    incident i on node { opens on a or b or c or d or e or f or g or h })");
  const auto limit = [&](const char* name) {
    for (const auto& inst :
         out->ir.functions[pack.leaves[signal(pack, name).sequence.steps[0].leaf].predicate]
             .insts) {
      double value = 0;
      std::memcpy(&value, &inst.imm, sizeof value);
      if (inst.op == ir::Op::kConstF64) return value;
    }
    return -1.0;
  };
  EXPECT_EQ(limit("t.a"), 1);
  EXPECT_EQ(limit("t.b"), 2e3);
  EXPECT_EQ(limit("t.c"), 3e6);
  EXPECT_EQ(limit("t.d"), 4e9);
  EXPECT_EQ(limit("t.e"), 5e12);
  for (const char* name : {"t.f", "t.g", "t.h"}) EXPECT_EQ(limit(name), 6e9);
}

TEST(Plans, absent_keep_all_and_guards) {
  COMPILED(out, R"(
    signal stuck on (node, nic) {
      d: nic.state where not d.up
      then absent u: nic.state where u.up for 30s
      keep all max 8
    }
    signal solo on (node, gpu) {
      e: gpu.xid where e.code == 74 and e.reg[0] any bits (1, 20)
      and none gpu.xid where it.code != 74 in the last 24h
    } incident i on node { opens on stuck or solo })");
  const abi::SequencePlan& stuck = signal(pack, "t.stuck").sequence;
  EXPECT_EQ(stuck.keep, abi::KeepMode::kAll);
  EXPECT_EQ(stuck.partials_max, 8u);
  EXPECT_EQ(stuck.steps[1].mode, abi::StepMode::kAbsent);
  EXPECT_EQ(stuck.steps[1].absent_ns, 30 * kSecond);
  const abi::SignalPlan& solo = signal(pack, "t.solo");
  ASSERT_EQ(solo.sequence.guards.size(), 1u);
  EXPECT_EQ(solo.sequence.guards[0].window_ns, 24 * kHour);
  EXPECT_EQ(constraints(pack.leaves[solo.sequence.guards[0].leaf]), "2:[min..73][75..max]");
  EXPECT_EQ(solo.horizon_ns, 24 * kHour);
  const std::string residual = ir_text(*out, pack.leaves[solo.sequence.steps[0].leaf].residual);
  EXPECT_NE(residual.find("any.bits"), std::string::npos) << residual;
}

TEST(Plans, counts_distinct_bursts_and_thresholds) {
  COMPILED(out, R"(
    signal bursts on (node, gpu) { count bursts(gpu.xid where it.code == 48, gap 3m) >= 5 within 24h }
    signal spread on node { count distinct gpu of gpu.xid where it.code == 31 >= 2 within 24h }
    signal wide on job { count distinct node of nccl.timeout >= max(3, 5% of nodes(job)) within 60s }
    signal many on node { count gpu.base > 10 within 1h each rearm 4 }
    incident i on job { opens on bursts or spread or wide or many })");
  const abi::CountPlan& b = signal(pack, "t.bursts").count;
  EXPECT_EQ(b.mode, abi::CountMode::kBursts);
  EXPECT_EQ(b.gap_ns, 180 * kSecond);
  EXPECT_EQ(b.window_ns, 24 * kHour);
  EXPECT_EQ(b.threshold_constant, 5);
  EXPECT_EQ(b.threshold, kNone32);
  const abi::CountPlan& d = signal(pack, "t.spread").count;
  EXPECT_EQ(d.mode, abi::CountMode::kDistinct);
  EXPECT_EQ(d.inputs[0].distinct_slot, 1);
  const abi::SignalPlan& w = signal(pack, "t.wide");
  EXPECT_TRUE(w.global_stage);
  ASSERT_NE(w.count.threshold, kNone32);
  const std::string text = ir_text(*out, w.count.threshold);
  EXPECT_NE(text.find("nodes.in.job"), std::string::npos) << text;
  const abi::CountPlan& m = signal(pack, "t.many").count;
  EXPECT_EQ(m.inputs.size(), 4u);  // every concrete kind below gpu.base
  EXPECT_TRUE(m.each);
  EXPECT_EQ(m.rearm, 4);
  EXPECT_EQ(m.op, abi::CompareOp::kGt);
}

TEST(Plans, condition_with_peers_and_limits) {
  COMPILED(out, R"(
    profile hw.base abstract { temp_hot: celsius = 85 within 70 .. 95 }
    profile hw.h100 extends hw.base matches label gpu.product like "NVIDIA H100*" and label site != "lab" { temp_hot = 87 }
    profile hw.unknown extends hw.base fallback { }
    signal hot on (node, gpu) {
      when gpu.temp.value > profile.temp_hot
        or gpu.temp.value > peers(job).median + 6 * max(peers(job).mad, 0.5 celsius)
      for 2m  keep 5m  clear below profile.temp_hot - 4 celsius
      nodata hold for 10m  peers at least 8
    } incident i on node { opens on hot })");
  const abi::SignalPlan& s = signal(pack, "t.hot");
  const abi::ConditionPlan& c = s.condition;
  EXPECT_TRUE(s.global_stage);
  EXPECT_EQ(c.for_ns, 120 * kSecond);
  EXPECT_EQ(c.keep_ns, 300 * kSecond);
  EXPECT_EQ(c.nodata, abi::NoData::kHold);
  EXPECT_EQ(c.nodata_hold_ns, 600 * kSecond);
  ASSERT_EQ(c.features.size(), 1u);
  EXPECT_EQ(pack.features[c.features[0]].op, abi::FeatureOp::kLast);
  ASSERT_EQ(c.triggers.size(), 1u);
  EXPECT_EQ(c.trigger_keys.size(), 1u);
  ASSERT_EQ(pack.peers.size(), 2u);
  EXPECT_EQ(pack.peers[0].stat, abi::PeersStat::kMedian);
  EXPECT_EQ(pack.peers[1].stat, abi::PeersStat::kMad);
  EXPECT_EQ(pack.peers[0].at_least, 8u);
  EXPECT_EQ(pack.peers[0].feature, c.features[0]);
  EXPECT_TRUE(pack.exprs[c.when].reads_class);
  EXPECT_TRUE(pack.exprs[c.when].reads_peers);
  EXPECT_NE(c.clear, kNone32);
  EXPECT_NE(c.shown_value, kNone32);
  EXPECT_EQ(c.limit_origin.substr(0, 29), "profile.temp_hot (t/pack.rfx:");
  // classes: the fallback first, then by name
  ASSERT_EQ(pack.classes.size(), 3u);
  EXPECT_EQ(pack.classes[0].name, "hw.unknown");
  EXPECT_EQ(pack.classes[1].name, "hw.base");
  EXPECT_TRUE(pack.classes[1].abstract_class);
  EXPECT_EQ(pack.classes[2].parent, 1);
  EXPECT_EQ(pack.classes[2].depth, 1);
  EXPECT_NE(pack.classes[2].matches, kNone32);
  double hot = 0;
  std::memcpy(&hot, &pack.classes[2].params[0], sizeof hot);
  EXPECT_EQ(hot, 87.0);
  std::memcpy(&hot, &pack.classes[0].params[0], sizeof hot);
  EXPECT_EQ(hot, 85.0);
}

TEST(Plans, features_of_a7) {
  COMPILED(out, R"(
    feature ecc_wear      on (node, gpu) = decayed(increase(gpu.ecc.total) where it.kind == corrected, half_life 3d)  reset on gpu.replaced
    feature throttle_rate on (node, gpu) = rate(gpu.throttle, 6h)
    feature temp_drift    on (node, gpu) = trend(gpu.temp.value, 6h)
    feature quiet         on node        = since(node.heartbeat)
    feature bad_streak    on node        = streak(job.step.slow)
    feature mem_cusum     on (node, gpu) = cusum(gpu.temp.power, target peers.median, slack 2%)
    feature recent_mean   on (node, gpu) = mean(gpu.temp.value, last 8)
    feature same_mean     on (node, gpu) = mean(gpu.temp.value, last 8)
    signal a on (node, gpu) { when ecc_wear > 50 for 10m }
    signal b on (node, gpu) { when throttle_rate > 3 per hour and temp_drift > 2 celsius per hour }
    signal c on node { when quiet > 5m and bad_streak >= 3 }
    signal d on (node, gpu) { when mem_cusum > 100 watt and recent_mean > 80 celsius and same_mean > 1 celsius }
    incident i on node { opens on a or b or c or d })");
  const abi::FeaturePlan& wear = feature(pack, "t.ecc_wear");
  EXPECT_EQ(wear.op, abi::FeatureOp::kDecayed);
  EXPECT_TRUE(wear.counter_input);
  EXPECT_EQ(wear.half_life_ns, 72 * kHour);
  EXPECT_EQ(wear.resets.size(), 1u);
  EXPECT_EQ(constraints(pack.leaves[wear.inputs[0].leaf]).substr(0, 2), "2:");
  EXPECT_EQ(feature(pack, "t.throttle_rate").window_ns, 6 * kHour);
  EXPECT_EQ(feature(pack, "t.throttle_rate").inputs[0].value, kNone32);
  EXPECT_TRUE(feature(pack, "t.quiet").integer_result);
  const abi::FeaturePlan& streak = feature(pack, "t.bad_streak");
  ASSERT_EQ(streak.inputs.size(), 2u);
  EXPECT_FALSE(streak.inputs[0].streak_break);
  EXPECT_TRUE(streak.inputs[1].streak_break);
  EXPECT_EQ(constraints(pack.leaves[streak.inputs[0].leaf]), "1:[1..1]");
  EXPECT_EQ(constraints(pack.leaves[streak.inputs[1].leaf]), "1:[0..0]");
  const abi::FeaturePlan& cusum = feature(pack, "t.mem_cusum");
  EXPECT_TRUE(cusum.global_stage);
  EXPECT_TRUE(cusum.slack_relative);
  EXPECT_EQ(cusum.slack, 0.02);
  EXPECT_NE(cusum.target, kNone32);
  EXPECT_TRUE(feature(pack, "t.recent_mean").exclude_current);
  for (const auto& f : pack.features) EXPECT_NE(f.name, "t.same_mean") << "equal features share";
  EXPECT_TRUE(signal(pack, "t.a").condition.time_driven);
  EXPECT_TRUE(signal(pack, "t.d").global_stage);
  EXPECT_FALSE(signal(pack, "t.a").global_stage);
}

TEST(Plans, mean_is_compared_without_division) {
  COMPILED(out, R"(
    signal e on (node, gpu) { e: gpu.temp where e.value > 2.5 * mean(gpu.temp.value, last 8, min 4) }
    incident i on node { opens on e })");
  ASSERT_EQ(pack.features.size(), 2u);
  EXPECT_EQ(pack.features[0].op, abi::FeatureOp::kSum);
  EXPECT_EQ(pack.features[1].op, abi::FeatureOp::kCount);
  for (const auto& f : pack.features) {
    EXPECT_EQ(f.last_n, 8u);
    EXPECT_EQ(f.min_samples, 4u);
    EXPECT_TRUE(f.exclude_current);
  }
  const abi::LeafPlan& leaf = pack.leaves[signal(pack, "t.e").sequence.steps[0].leaf];
  EXPECT_EQ(leaf.features, (std::vector<abi::FeatureId>{0, 1}));
  EXPECT_EQ(pack.entity_kinds[leaf.entity_kind].keys, (std::vector<std::string>{"node", "gpu"}));
  const std::string text = ir_text(*out, leaf.predicate);
  EXPECT_EQ(text.find("div"), std::string::npos) << text;
  EXPECT_NE(text.find("mul"), std::string::npos) << text;
  ASSERT_EQ(pack.chunks.size(), 1u);
  EXPECT_EQ(pack.chunks[0].features, leaf.features);
}

TEST(Plans, bare_keys_beside_a_record_are_the_records_own) {
  COMPILED(out, R"(
    signal a on node { e: gpu.xid where e.code == 48 and label(node, site) == "lab" }
    signal b on job { e: gpu.xid where e.code == 48 and nodes(job) > 8 }
    signal c on node { when gpu.temp.value > 90 celsius and label(node, site) == "lab" }
    incident i on node { opens on a or b or c })");
  for (const char* name : {"t.a", "t.b"}) {
    const abi::LeafPlan& leaf = pack.leaves[signal(pack, name).sequence.steps[0].leaf];
    const std::string text = ir_text(*out, leaf.predicate);
    EXPECT_EQ(text.find("entity"), std::string::npos) << text;
    EXPECT_NE(text.find("field #0"), std::string::npos) << text;
  }
  const std::string when = ir_text(*out, signal(pack, "t.c").condition.when);
  EXPECT_NE(when.find("entity"), std::string::npos) << when;
}

// The five shapes of the throughput workload.
TEST(Plans, workload_shapes) {
  COMPILED(out, R"(
    event bench.base abstract { key node: node  code: u16  value: f64  severity: u8 }
    event k.a extends bench.base { }  event k.b extends bench.base { }
    signal a on node { e: k.a where e.code in 3..10 and e.severity >= 3 and e.value > 50.25 }
    signal b on node { count k.a where it.code in 5..36 and it.severity >= 1 >= 5 within 60s each }
    signal c on node within 30s { a: k.a where a.code in 1..16 then b: k.b where b.code in 2..33 keep latest }
    signal d on node { a: k.a where a.code in 1..4 then absent b: k.b where b.code in 2..33 for 30s keep all max 64 }
    signal e on node { e: k.a where e.code in 0..1000 and e.value > 2.5 * mean(k.a.value, last 8, min 4) }
    signal f on node { e: k.a where e.value > 1.5 * mean(k.a.value, last 16, min 4) }
    incident i on node { opens on a or b or c or d or e or f })");
  const abi::LeafPlan& a = pack.leaves[signal(pack, "t.a").sequence.steps[0].leaf];
  EXPECT_EQ(constraints(a), "1:[3..10] 3:[3..max]");
  EXPECT_NE(ir_text(*out, a.residual).find("const.f64 50.25"), std::string::npos);
  const abi::SignalPlan& b = signal(pack, "t.b");
  EXPECT_TRUE(b.count.each);
  EXPECT_EQ(b.count.window_ns, 60 * kSecond);
  const abi::SequencePlan& c = signal(pack, "t.c").sequence;
  EXPECT_EQ(c.keep, abi::KeepMode::kLatest);
  EXPECT_EQ(c.steps[1].leaf, signal(pack, "t.d").sequence.steps[1].leaf) << "shared leaf";
  EXPECT_EQ(signal(pack, "t.d").sequence.partials_max, 64u);
  const abi::LeafPlan& e = pack.leaves[signal(pack, "t.e").sequence.steps[0].leaf];
  EXPECT_EQ(constraints(e), "1:[0..1000]");
  EXPECT_EQ(e.features.size(), 2u);
  EXPECT_EQ(pack.features.size(), 4u);  // sum and count for each of the two lengths
  EXPECT_EQ(pack.chunks.size(), 1u);    // f only: everything else is indexed
}

TEST(Plans, mean_of_durations_and_its_explanation) {
  COMPILED(out, R"(
    event job.time extends job.step { took: duration }
    signal s on node { when mean(job.time.took, last 8) > 1.2 * peers(job).median }
    incident i on node { opens on s })");
  const abi::ConditionPlan& c = signal(pack, "t.s").condition;
  // Compared as sum and count, shown as the mean that was written.
  ASSERT_EQ(pack.exprs[c.shown_value].features.size(), 1u);
  EXPECT_EQ(pack.features[pack.exprs[c.shown_value].features[0]].op, abi::FeatureOp::kMean);
  EXPECT_EQ(pack.exprs[c.when].features.size(), 2u);
  EXPECT_EQ(pack.features[pack.peers[0].feature].op, abi::FeatureOp::kMean);
  const auto scaled = compile_pack(
      "event job.time extends job.step { took: duration } "
      "signal s on node { e: job.time where e.took > 2.5 * mean(job.time.took, last 8) } "
      "incident i on node { opens on s }");
  ASSERT_NE(scaled->pack, nullptr) << rendered(*scaled);
  ASSERT_EQ(scaled->pack->features.size(), 2u);
  EXPECT_EQ(scaled->pack->features[0].op, abi::FeatureOp::kSum);
}

TEST(Plans, keys_come_from_fields_placement_and_labels) {
  COMPILED(out, R"(
    signal j on job { e: gpu.xid }
    signal r on rack { e: gpu.xid }
    signal n on node { e: nccl.timeout }
    incident i on job { opens on j or r or n })");
  const auto key = [&](const char* name) {
    return signal(pack, name).sequence.steps[0].key.parts[0];
  };
  EXPECT_EQ(key("t.j").from, abi::KeyPart::From::kJobOfNode);
  EXPECT_EQ(key("t.r").from, abi::KeyPart::From::kNodeLabel);
  EXPECT_EQ(key("t.r").label, "rack");
  EXPECT_EQ(key("t.n").from, abi::KeyPart::From::kSlot);
  EXPECT_EQ(key("t.n").slot, 1);
}

TEST(Plans, explicit_equality_joins_a_step_without_the_key) {
  COMPILED(out, R"(
    event pod.killed { key pod: pod  host: node }
    signal s on node within 1m { a: gpu.xid then b: pod.killed where b.host == a.node }
    incident i on node { opens on s })");
  EXPECT_EQ(signal(pack, "t.s").sequence.steps[1].key.parts[0].slot, 1);
}

TEST(Plans, causes_edges_and_incidents) {
  COMPILED(out, R"(
    profile hw.a fallback { p_wear: f64 = 0.7  prior_scale gpu_memory = 2 }
    profile hw.b extends hw.a { p_wear = 0.8 }
    fault gpu_memory on (node, gpu) { prior 2e-4 per job  half_life 30d  severity critical  remedy drain }
    external tor_switch on tor { prior 24e-5 per day }
    signal xid_48 on (node, gpu) { e: gpu.xid where e.code == 48 } leak 1e-5 per hour
    signal nic_flap on (node, nic) { e: nic.state where not e.up } leak 0.02
    signal stalled on job { e: nccl.timeout }
    gpu_memory causes xid_48 p profile.p_wear lag -24h .. 1h
    gpu_memory causes stalled p 0.9 lag -30s .. 15m scope job
    tor_switch causes nic_flap weight 2.5 nats scope tor
    xid_48 causes stalled p 0.3 scope job
    incident job_hang on job {
      opens on stalled or incident.open where it.symptom == "hang"
      settle 45s merge for 5m confirm 0.8
    })");
  EXPECT_EQ(pack.causes[0].class_prior_scale, (std::vector<double>{2, 2}));
  EXPECT_EQ(pack.causes[0].remedy, "drain");
  EXPECT_EQ(pack.causes[1].kind, abi::CauseKind::kExternal);
  EXPECT_EQ(pack.causes[1].prior_unit, abi::RateUnit::kPerHour);
  EXPECT_DOUBLE_EQ(pack.causes[1].prior, 1e-5);
  ASSERT_EQ(pack.edges.size(), 4u);
  EXPECT_EQ(pack.edges[0].class_p, (std::vector<double>{0.7, 0.8}));
  EXPECT_EQ(pack.edges[0].lag_lo_ns, -24 * kHour);
  EXPECT_EQ(pack.edges[1].scope, abi::Scope::kJob);
  EXPECT_TRUE(pack.edges[2].has_weight);
  EXPECT_EQ(pack.edges[2].lag_lo_ns, -5 * kSecond);
  EXPECT_TRUE(pack.edges[3].from_signal);
  EXPECT_EQ(signal(pack, "t.xid_48").leak_per_hour, 1e-5);
  EXPECT_EQ(signal(pack, "t.nic_flap").leak_probability, 0.02);
  const abi::IncidentPlan& i = pack.incidents[0];
  EXPECT_EQ(i.settle_ns, 45 * kSecond);
  EXPECT_EQ(i.confirm, 0.8);
  ASSERT_EQ(i.open_kinds.size(), 1u);
  EXPECT_EQ(i.open_kinds[0], abi::kIncidentOpen);
  EXPECT_NE(i.open_predicates[0], kNone32);
}

TEST(Plans, decoder_assignments) {
  COMPILED(out, R"(
    decoder nvrm for text {
      prefix auto
      line /NVRM: Xid \(PCI:(?<pci>[0-9a-f:.]+)\): (?<code>\d+)(?:, pid=(?<pid>[^,]+))?,? ?(?<text>.*)/
        -> gpu.xid { gpu = gpu_at(node, pci) code = u16(code) pid = u32?(pid) text = text }
      line /ecc (?<n>\d+)/ fold 2 -> gpu.ecc { kind = corrected total = u64(n) gpu = 3 }
      line /timeout (?<job>\w+) (?<ms>\d+)/ -> nccl.timeout { job = job waited = ms(ms) op = "x" rank = 0 }
      line /noise/ -> ignore
    })");
  ASSERT_EQ(pack.decoders.size(), 1u);
  const auto& lines = pack.decoders[0].lines;
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NE(lines[0].pattern.find("(?P<pci>"), std::string::npos);
  using From = abi::DecoderAssign::From;
  ASSERT_EQ(lines[0].assigns.size(), 5u);
  EXPECT_EQ(lines[0].assigns[0].from, From::kGpuAtGroup);
  EXPECT_EQ(lines[0].assigns[1].group, 2);
  EXPECT_EQ(lines[0].assigns[1].int_max, 65535);
  EXPECT_EQ(lines[0].assigns[4].from, From::kNode);
  EXPECT_EQ(lines[1].fold_lines, 2u);
  EXPECT_EQ(lines[1].assigns[0].from, From::kConstantText);
  EXPECT_EQ(lines[1].assigns[2].constant_int, 3);
  EXPECT_EQ(lines[2].assigns[1].scale, 1e6);
  EXPECT_TRUE(lines[3].ignore);
}

TEST(Plans, tests_are_listed_only_when_asked_for) {
  const std::string text =
      std::string(kKinds) +
      "signal s on node { e: gpu.xid } "
      "test \"a\" { nodes n[1..2] at 1h: gpu.xid n1/0 code 48 expect s on n1 }";
  EXPECT_EQ(compile_files({{"t/pack.rfx", text}}, true)->tests.size(), 1u);
  EXPECT_EQ(compile_files({{"t/pack.rfx", text}}, false)->tests.size(), 0u);
}

TEST(Plans, compilation_is_deterministic) {
  const std::string text = R"(
    signal a on node { e: gpu.xid where e.code == 48 }
    signal b on (node, gpu) { when gpu.temp.value > 90 celsius for 1m }
    fault f on node { prior 1e-4 per job } f causes a, b p 0.5)";
  const auto x = compile_pack(text);
  const auto y = compile_pack(text);
  ASSERT_NE(x->pack, nullptr) << rendered(*x);
  EXPECT_EQ(x->pack->set_sha256, y->pack->set_sha256);
  ASSERT_EQ(x->ir.functions.size(), y->ir.functions.size());
  for (size_t i = 0; i < x->ir.functions.size(); ++i) {
    EXPECT_EQ(ir::print(x->ir, x->ir.functions[i]), ir::print(y->ir, y->ir.functions[i]));
  }
}

}  // namespace
}  // namespace reflex::test
