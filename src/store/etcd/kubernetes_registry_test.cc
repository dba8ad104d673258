#include <memory>
#include <string>
#include <vector>

#include "store/etcd/etcd_fixture.h"
#include "store/etcd/etcd_store.h"
#include "store/test_records.h"

namespace croft::store {
namespace {

using namespace std::chrono_literals;

const std::string kWebPlace = "/registry/services/specs/default/web";
constexpr std::string_view kWeb =
    R"({"kind":"Service","apiVersion":"v1","metadata":{"name":"web","namespace":"default"},)"
    R"("spec":{"ports":[{"port":80,"nodePort":30080}],"clusterIP":"10.96.0.9","clusterIPs":["10.96.0.9"],)"
    R"("type":"NodePort","ipFamilies":["IPv4"]}})";
constexpr std::string_view kCidr =
    R"({"kind":"ServiceCIDR","apiVersion":"networking.k8s.io/v1","metadata":{"name":"kubernetes"},)"
    R"("spec":{"cidrs":["10.96.0.0/12"]}})";

class KubernetesRegistryTest : public testing::Test {
 protected:
  void SetUp() override {
    CROFT_NEEDS_ETCD();
    etcd::clear(*connect(), soon());
    store_ = open();
  }

  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), 30s); }

  [[nodiscard]] std::unique_ptr<etcd::Client> connect() {
    return etcd::client_of({etcd::shared_etcd().url()}, clock_, random_);
  }
  [[nodiscard]] std::unique_ptr<Store> open(bool services = false) {
    auto registry = etcd::make_kubernetes_registry({"/registry", services});
    EXPECT_TRUE(registry);
    return make_etcd_store(connect(), clock_, random_, *std::move(registry));
  }
  [[nodiscard]] std::unique_ptr<Store> open_without() { return make_etcd_store(connect(), clock_, random_); }

  /// As a kube-apiserver or an operator with etcdctl would.
  void put_raw(const std::string& place, std::string_view bytes) {
    ASSERT_TRUE(connect()->txn(etcd::put_txn(place, std::string(bytes)), soon()));
  }
  [[nodiscard]] std::string raw(const std::string& place) {
    const auto found = connect()->range(wire::etcd::range_of_key(place), soon());
    EXPECT_TRUE(found);
    return found && !found->kvs().empty() ? found->kvs(0).value() : "";
  }

  [[nodiscard]] static Write put(const core::RangeAllocation& range, Condition condition) {
    return {ports_key(), range, condition};
  }
  [[nodiscard]] static Key ports_key() { return core::range_allocation_key(core::kServiceNodePorts); }
  [[nodiscard]] Result<Revision> commit(Store& store, const std::vector<Write>& writes, std::uint64_t token = 1) const {
    return store.commit(writes, sample_token(token), soon());
  }
  [[nodiscard]] Record ports(Store& store) const {
    const auto record = store.get(ports_key(), soon());
    EXPECT_TRUE(record && *record);
    return record && *record ? **record : Record{};
  }
  template <class T>
  [[nodiscard]] static ErrorCode code_of(const Result<T>& result) {
    return result ? ErrorCode::internal : result.error().code;
  }

  os::SystemClock clock_;
  os::SystemRandom random_;
  std::unique_ptr<Store> store_;
};

TEST_F(KubernetesRegistryTest, ARangeGoesUnderKubernetesKeyInItsForm) {
  ASSERT_TRUE(commit(*store_, {put({"30000-32767", std::string("\x01\0", 2), nullptr}, Condition::if_absent())}));
  const std::string bytes = raw("/registry/ranges/servicenodeports");
  EXPECT_TRUE(bytes.starts_with(std::string("k8s\0", 4)));
  EXPECT_NE(bytes.find("30000-32767"), bytes.npos);
  const Record record = ports(*store_);
  EXPECT_EQ(without_rest(*record.value),
            Value(core::RangeAllocation{"30000-32767", std::string("\x01\0", 2), nullptr}));
  EXPECT_EQ(record.token, WriteToken{});
}

TEST_F(KubernetesRegistryTest, OfTwoWritersOneWins) {
  ASSERT_TRUE(commit(*store_, {put({"30000-32767", "", nullptr}, Condition::if_absent())}));
  const auto other = open();
  const Record mine = ports(*store_);
  const Record theirs = ports(*other);
  auto changed = std::get<core::RangeAllocation>(*theirs.value);
  changed.data = "\x02";
  ASSERT_TRUE(commit(*other, {put(changed, Condition::if_revision(theirs.revision))}));
  changed = std::get<core::RangeAllocation>(*mine.value);
  changed.data = "\x04";
  EXPECT_EQ(code_of(commit(*store_, {put(changed, Condition::if_revision(mine.revision))})), ErrorCode::conflict);
  EXPECT_EQ(code_of(commit(*store_, {put(changed, Condition::if_absent())})), ErrorCode::conflict);
  EXPECT_EQ(std::get<core::RangeAllocation>(*ports(*store_).value).data, "\x02");
}

TEST_F(KubernetesRegistryTest, JsonStaysJsonAndKeepsItsMetadata) {
  put_raw("/registry/ranges/servicenodeports",
          R"({"kind":"RangeAllocation","apiVersion":"v1","metadata":{"creationTimestamp":null,"labels":{"a":"b"}},)"
          R"("range":"30000-32767","data":""})"
          "\n");
  const Record record = ports(*store_);
  auto range = std::get<core::RangeAllocation>(*record.value);
  range.data = "\x01";
  ASSERT_TRUE(commit(*store_, {put(range, Condition::if_revision(record.revision))}));
  EXPECT_EQ(raw("/registry/ranges/servicenodeports"),
            R"({"kind":"RangeAllocation","apiVersion":"v1","metadata":{"creationTimestamp":null,"labels":{"a":"b"}},)"
            R"("range":"30000-32767","data":"AQ=="})"
            "\n");
}

TEST_F(KubernetesRegistryTest, ATwelveBitmapPassesBothWays) {
  const core::RangeAllocation range{"10.96.0.0/12", std::string(131072, '\xa5'), nullptr};
  const Key key = core::range_allocation_key(core::kServiceIps);
  Revision revision;
  for (int i = 0; i < 5; ++i) {
    const Condition condition = i == 0 ? Condition::if_absent() : Condition::if_revision(revision);
    const auto done = commit(*store_, {{key, range, condition}});
    ASSERT_TRUE(done) << done.error().message;
    revision = *done;
    const auto record = store_->get(key, soon());
    ASSERT_TRUE(record && *record);
    EXPECT_EQ(without_rest(*(*record)->value), Value(range));
  }
}

TEST_F(KubernetesRegistryTest, ServicesAreCroftsOwnByDefault) {
  put_raw(kWebPlace, kWeb);
  const core::Service service = sample_service();
  ASSERT_TRUE(commit(*store_, {{core::service_key(service.name), service, Condition::if_absent()}}));
  EXPECT_NE(raw("/croft/v1/service/default/web").find("\"token\""), std::string::npos);
  EXPECT_EQ(raw(kWebPlace), kWeb);
}

TEST_F(KubernetesRegistryTest, ServicesOfKubernetesAreReadOnly) {
  put_raw(kWebPlace, kWeb);
  put_raw("/registry/services/endpoints/default/web", "no Service");
  const auto store = open(true);
  const Key key = core::service_key({"default", "web"});
  const auto record = store->get(key, soon());
  ASSERT_TRUE(record && *record);
  const auto service = std::get<core::Service>(*(*record)->value);
  EXPECT_EQ(service.cluster_ip, "10.96.0.9");
  const auto listed = store->list({Kind::service, "default/"}, soon());
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(listed->front().key, key);

  const Write range = put({"30000-32767", "", nullptr}, Condition::if_absent());
  EXPECT_EQ(code_of(commit(*store, {range, {key, service, Condition::always()}})), ErrorCode::read_only);
  EXPECT_EQ(code_of(commit(*store, {range, {key, std::nullopt, Condition::always()}})), ErrorCode::read_only);
  EXPECT_EQ(raw("/registry/ranges/servicenodeports"), "") << "nothing of the commit was sent";
  // Its condition may guard a commit.
  Write check{key, std::nullopt, Condition::if_revision((*record)->revision)};
  check.only_check = true;
  EXPECT_TRUE(commit(*store, {range, check}));
  EXPECT_EQ(raw(kWebPlace), kWeb);
}

/// Names of Services of a kind, with their first address.
std::vector<std::string> services_in(Store& store, Kind kind, Deadline deadline) {
  const auto listed = store.list({kind, ""}, deadline);
  EXPECT_TRUE(listed) << listed.error().message;
  std::vector<std::string> found;
  for (const Record& record : *listed) {
    const auto* foreign = record.get_if<core::ForeignService>();
    const core::Service& service = foreign != nullptr ? foreign->service : std::get<core::Service>(*record.value);
    found.push_back(record.key.name + " " + service.cluster_ip);
  }
  return found;
}

TEST_F(KubernetesRegistryTest, TheServicesOfTheOtherKindAreThereToo) {
  put_raw(kWebPlace, kWeb);
  core::Service mine = sample_service();
  ASSERT_TRUE(commit(*store_, {{core::service_key(mine.name), mine, Condition::if_absent()}}));
  const std::vector<std::string> croft = {"default/web " + mine.cluster_ip}, theirs = {"default/web 10.96.0.9"};
  EXPECT_EQ(services_in(*store_, Kind::service, soon()), croft);
  EXPECT_EQ(services_in(*store_, Kind::foreign_service, soon()), theirs);
  EXPECT_FALSE(store_->capabilities().services == core::System::kubernetes);
  const auto kubernetes = open(true);
  EXPECT_EQ(services_in(*kubernetes, Kind::service, soon()), theirs);
  EXPECT_EQ(services_in(*kubernetes, Kind::foreign_service, soon()), croft);
  EXPECT_TRUE(kubernetes->capabilities().services == core::System::kubernetes);
  // Croft's own take from the ranges of the usual prefix only.
  auto elsewhere = make_etcd_store(connect(), clock_, random_, *etcd::make_kubernetes_registry({"/k8s-b", true}));
  EXPECT_TRUE(services_in(*elsewhere, Kind::foreign_service, soon()).empty());

  const Key key = core::foreign_service_key(mine.name);
  for (Store* store : {store_.get(), kubernetes.get()}) {
    const auto record = store->get(key, soon());
    ASSERT_TRUE(record && *record);
    EXPECT_EQ(code_of(commit(*store, {{key, std::nullopt, Condition::always()}})), ErrorCode::read_only);
    EXPECT_EQ(code_of(commit(*store, {{key, *(*record)->value, Condition::always()}})), ErrorCode::read_only);
    Write check{key, std::nullopt, Condition::if_absent()};
    check.only_check = true;
    EXPECT_EQ(code_of(commit(*store, {put({"30000-32767", "", nullptr}, Condition::if_absent()), check})),
              ErrorCode::conflict);
  }
}

TEST_F(KubernetesRegistryTest, AServiceCidrIsReadOnly) {
  put_raw("/registry/servicecidrs/kubernetes", kCidr);
  const Key key = core::service_cidr_key("kubernetes");
  const auto record = store_->get(key, soon());
  ASSERT_TRUE(record && *record);
  EXPECT_EQ(std::get<core::ServiceCidrObject>(*(*record)->value).cidrs.size(), 1U);
  EXPECT_EQ(code_of(commit(*store_, {{key, *(*record)->value, Condition::always()}})), ErrorCode::read_only);
}

TEST_F(KubernetesRegistryTest, AWatchSeesThem) {
  const auto store = open(true);
  const auto position = store->position(soon());
  ASSERT_TRUE(position);
  const auto watch = store->watch({{ports_key()}, {{Kind::service, ""}, {Kind::service_cidr, ""}}}, *position, soon());
  ASSERT_TRUE(watch);
  ASSERT_TRUE(commit(*store, {put({"30000-32767", "\x01", nullptr}, Condition::if_absent())}));
  put_raw(kWebPlace, kWeb);
  std::vector<Change> seen;
  // That the first writer made the register's epoch wakes the watch too, and is no change of these.
  for (int i = 0; seen.size() < 2; ++i) {
    ASSERT_LT(i, 4) << "nothing came";
    auto changes = (*watch)->next(soon());
    ASSERT_TRUE(changes) << changes.error().message;
    seen.insert(seen.end(), changes->begin(), changes->end());
  }
  // The two are watched apart, and come in either order.
  std::sort(seen.begin(), seen.end(), [](const Change& a, const Change& b) { return a.key < b.key; });
  EXPECT_EQ(seen[0].key, ports_key());
  EXPECT_EQ(std::get<core::RangeAllocation>(*seen[0].record->value).data, "\x01");
  EXPECT_EQ(seen[1].key, core::service_key({"default", "web"}));
  EXPECT_EQ(std::get<core::Service>(*seen[1].record->value).ports.front().node_port, 30080);
}

TEST_F(KubernetesRegistryTest, ALostReplyIsSettledByTheRecordThatNamesTheCommit) {
  const core::Service service = sample_service();
  const std::vector<Write> writes = {put({"30000-32767", "\x01", nullptr}, Condition::if_absent()),
                                     {core::service_key(service.name), service, Condition::if_absent()}};
  ASSERT_TRUE(commit(*store_, writes, 1));
  EXPECT_EQ(*store_->fate_of(writes, sample_token(1), soon()), Fate::applied);
  EXPECT_EQ(*store_->fate_of(writes, sample_token(2), soon()), Fate::lost) << "the range's bytes are the same";
  const std::vector<Write> range_alone = {writes.front()};
  EXPECT_EQ(*store_->fate_of(range_alone, sample_token(1), soon()), Fate::applied);
  const std::vector<Write> other = {put({"30000-32767", "\x02", nullptr}, Condition::if_absent())};
  EXPECT_EQ(*store_->fate_of(other, sample_token(1), soon()), Fate::lost);
}

TEST_F(KubernetesRegistryTest, DamageNamesTheKey) {
  put_raw("/registry/ranges/servicenodeports", "k8s:enc:aescbc:v1:key:…");
  const auto damage = [&]() -> std::optional<Error> {
    const auto record = store_->get(ports_key(), soon());
    const bool is_damaged = record && *record && !(*record)->value;
    return is_damaged ? std::optional((*record)->value.error()) : std::nullopt;
  };
  const auto encrypted = damage();
  ASSERT_TRUE(encrypted);
  EXPECT_EQ(encrypted->code, ErrorCode::refused_by_configuration);
  EXPECT_NE(encrypted->message.find("/registry/ranges/servicenodeports"), std::string::npos);
  EXPECT_NE(encrypted->message.find("encrypted at rest"), std::string::npos);
  put_raw("/registry/ranges/servicenodeports", "garbage");
  const auto garbage = damage();
  ASSERT_TRUE(garbage);
  EXPECT_EQ(garbage->code, ErrorCode::corrupt);
  EXPECT_NE(garbage->message.find("/registry/ranges/servicenodeports"), std::string::npos);
}

TEST_F(KubernetesRegistryTest, WithoutARegistryItsKindsAreRefused) {
  const auto store = open_without();
  EXPECT_EQ(code_of(store->get(ports_key(), soon())), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(commit(*store, {put({"30000-32767", "", nullptr}, Condition::if_absent())})),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(store->list({Kind::service_cidr, ""}, soon())), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(store->for_each(
                {Kind::service_cidr, ""}, [&] { return soon(); }, nullptr)),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(store->watch({{ports_key()}, {}}, Revision(1), soon())), ErrorCode::invalid_argument);
  EXPECT_TRUE(commit(*store, {{core::service_key({"default", "web"}), sample_service(), Condition::always()}}));
}

TEST(KubernetesPrefix, WhatIsNoPrefixIsRefused) {
  for (const char* prefix : {"", "registry", "/registry/", "/", "/a\nb"}) {
    EXPECT_FALSE(etcd::make_kubernetes_registry({prefix, true})) << prefix;
  }
}

}  // namespace
}  // namespace croft::store
