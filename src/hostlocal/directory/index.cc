#include "hostlocal/directory/index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

namespace croft::store::hostlocal {

namespace {
constexpr net::U128 kMapped = net::U128{0xffff} << 32;
}  // namespace

std::uint32_t content_hash(std::string_view key) {
  std::uint64_t x = 0xcbf29ce484222325U;  // FNV-1a, then the last steps of splitmix64
  for (const char c : key) x = (x ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return static_cast<std::uint32_t>(x ^ (x >> 31));
}

net::U128 number_of(const net::Address& address) {
  return address.is_v4() ? kMapped | address.value() : address.value();
}

net::Address address_of(net::U128 number) { return net::Address::v6(number).unmapped(); }

net::Address address_of(net::U128 number, net::Family family) {
  return net::Address::from(family, family == net::Family::v4 ? number - kMapped : number);
}

using core::space::SparsePlace;

std::optional<SparsePlace> ScannedView::place_of(const net::Address& address) const {
  return taken_.place_of(number_of(address));
}

/// Cells carry their whole hash, so they can be dealt again without reading anything.
void ScannedView::grow() {
  VectorCells old = std::exchange(holders_, VectorCells{std::vector<std::uint64_t>(holders_.cells.size() * 2)});
  const std::uint32_t mask = holders_.size() - 1;
  for (const std::uint64_t cell : old.cells) {
    if (cell == 0) continue;
    std::uint32_t index = HolderTable<VectorCells>::hash_of(cell) & mask;
    while (holders_.cells[index] != 0) index = (index + 1) & mask;
    holders_.cells[index] = cell;
  }
}

void ScannedView::see_content(const net::Address& address, std::uint32_t hash) {
  if (holder_count_ >= holders_.size() / 2) grow();
  const auto place = place_of(address);
  if (!place || !HolderTable(holders_).add(hash, *place)) {
    fit_ = false;
    return;
  }
  ++holder_count_;
}

std::optional<net::Address> ScannedView::next_free(const net::Address& first, const net::Address& last) {
  const auto number = taken_.next_free(number_of(first), number_of(last));
  return number ? std::optional(address_of(*number, first.family())) : std::nullopt;
}

std::vector<net::Address> ScannedView::with_hash(std::uint32_t hash) {
  std::vector<net::Address> found;
  HolderTable(holders_).for_each(hash, [&](SparsePlace place) {
    if (const auto number = taken_.number_at(place)) found.push_back(address_of(*number));
  });
  std::sort(found.begin(), found.end());
  return found;
}

void ScannedView::add(const net::Address& address, std::uint32_t hash) {
  const void* slots_before = taken_.slots().data();
  taken_.take(number_of(address));
  if (taken_.slots().data() != slots_before) fit_ = false;  // the places of all holders have moved
  see_content(address, hash);
}

void ScannedView::remove(const net::Address& address, std::uint32_t hash) {
  const auto place = place_of(address);
  if (!place) return;
  if (HolderTable(holders_).remove(hash, *place)) --holder_count_;
  taken_.give_back(number_of(address));
}

using core::space::SparsePlace;
using core::space::SparseSlot;
using core::space::SparseTable;

namespace {

static_assert(std::endian::native == std::endian::little, "the index is written in memory order; see kMagic");

constexpr std::array<char, 8> kMagic = {'c', 'r', 'o', 'f', 't', 'i', 'd', 'x'};
/// Counts up with any change of the layout, of content_hash, or of where SparseTable and HolderTable put things.
constexpr std::uint32_t kFormat = 1;
constexpr std::uint64_t kTablesOffset = 4096;
/// Keeps the sizes computed from a damaged header within reason.
constexpr std::uint32_t kSlotsMax = 1U << 26;

/// The beginning of the file.
struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t format = kFormat;
  std::uint32_t taken_slots = 0;
  std::uint32_t used_taken_slots = 0;
  std::uint32_t holder_cells = 0;
  std::uint64_t holders = 0;
  std::uint64_t reservations = 0;
  std::array<std::uint8_t, 16> boot{};
  std::int64_t read_at_since_boot_ns = 0;  ///< when all files were read
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Header) == 104 && std::is_trivially_copyable_v<Header>);
static_assert(sizeof(SparseSlot) == 24 && std::is_trivially_copyable_v<SparseSlot>);

std::uint64_t checksum_of(Header header) {
  header.checksum = 0;
  std::array<unsigned char, sizeof(Header)> bytes;
  std::memcpy(bytes.data(), &header, sizeof header);
  std::uint64_t x = 0xcbf29ce484222325U;
  for (const unsigned char b : bytes) x = (x ^ b) * 0x100000001b3U;
  return x;
}

void set_stamp(Header& header, const os::DirectoryStamp& stamp) {
  header.device = stamp.id.device;
  header.inode = stamp.id.inode;
  header.modified_ns = stamp.modified_ns;
  header.changed_ns = stamp.changed_ns;
}

os::DirectoryStamp stamp_of(const Header& header) {
  return {{header.device, header.inode}, header.modified_ns, header.changed_ns};
}

std::uint64_t holders_offset(const Header& header) {
  return kTablesOffset + std::uint64_t{header.taken_slots} * sizeof(SparseSlot);
}
std::uint64_t file_bytes(const Header& header) {
  return holders_offset(header) + std::uint64_t{header.holder_cells} * sizeof(std::uint64_t);
}

bool is_sound(const Header& header) {
  return header.magic == kMagic && header.format == kFormat && header.checksum == checksum_of(header) &&
         std::has_single_bit(header.taken_slots) && header.taken_slots <= kSlotsMax &&
         std::has_single_bit(header.holder_cells) && header.holder_cells <= kSlotsMax;
}

bool counts_for(const Header& header, const os::DirectoryStamp& stamp) {
  return stamp_of(header) == stamp && stamp.modified_ns != stamp.changed_ns;
}

bool counts_now(const Header& header, const Instant& now) {
  const std::chrono::nanoseconds age = now.since_boot - std::chrono::nanoseconds(header.read_at_since_boot_ns);
  return now.boot != BootId() && header.boot == now.boot.bytes && age.count() >= 0 && age <= kIndexAgeMax;
}

/// The bytes of the file, read page by page when asked for; changes stay in memory until they are written.
class Pages {
 public:
  Pages(os::RandomAccessFile file, std::uint64_t bytes) : file_(std::move(file)), bytes_(bytes) {}

  void read(std::uint64_t offset, void* to, std::size_t count) {
    auto* out = static_cast<std::byte*>(to);
    for_each_piece(offset, count, [&](Page& page, std::size_t at, std::size_t size) {
      std::memcpy(out, page.data.data() + at, size);
      out += size;
    });
  }
  void write(std::uint64_t offset, const void* from, std::size_t count) {
    const auto* in = static_cast<const std::byte*>(from);
    for_each_piece(offset, count, [&](Page& page, std::size_t at, std::size_t size) {
      std::memcpy(page.data.data() + at, in, size);
      page.changed_from = std::min(page.changed_from, at);
      page.changed_to = std::max(page.changed_to, at + size);
      in += size;
    });
  }
  [[nodiscard]] Result<void> write_changes() {
    for (const auto& page : pages_) {
      if (page->changed_from >= page->changed_to) continue;
      TRY_VOID(file_.write_at(page->number * kPageBytes + page->changed_from, page->data.data() + page->changed_from,
                              page->changed_to - page->changed_from));
      page->changed_from = kPageBytes;
      page->changed_to = 0;
    }
    return {};
  }
  [[nodiscard]] Result<void> write_through(std::uint64_t offset, const void* from, std::size_t count) {
    return file_.write_at(offset, from, count);
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  static constexpr std::size_t kPageBytes = 4096;
  struct Page {
    std::uint64_t number = 0;
    std::size_t changed_from = kPageBytes;
    std::size_t changed_to = 0;
    std::array<std::byte, kPageBytes> data;
  };

  template <class F>
  void for_each_piece(std::uint64_t offset, std::size_t count, F&& f) {
    while (count > 0) {
      const auto at = static_cast<std::size_t>(offset % kPageBytes);
      const std::size_t size = std::min(count, kPageBytes - at);
      f(page(offset / kPageBytes), at, size);
      offset += size;
      count -= size;
    }
  }
  Page& page(std::uint64_t number) {
    if (last_ != nullptr && last_->number == number) return *last_;
    const auto found = std::find_if(pages_.begin(), pages_.end(), [&](const auto& p) { return p->number == number; });
    last_ = found != pages_.end() ? found->get() : load(number);
    return *last_;
  }
  Page* load(std::uint64_t number) {
    auto page = std::make_unique<Page>();
    page->number = number;
    const std::uint64_t offset = number * kPageBytes;
    const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(kPageBytes, bytes_ - offset));
    const auto read = file_.read_at(offset, page->data.data(), size);
    if (!read || !*read) {
      failed_ = true;
      page->data.fill(std::byte{0});
    }
    pages_.push_back(std::move(page));
    return pages_.back().get();
  }

  os::RandomAccessFile file_;
  std::uint64_t bytes_;
  std::vector<std::unique_ptr<Page>> pages_;
  Page* last_ = nullptr;
  bool failed_ = false;
};

/// Records of one type, one behind the other in the pages.
template <class T>
struct PagedArray {
  Pages& pages;
  std::uint64_t offset;
  std::uint32_t count;

  [[nodiscard]] std::uint32_t size() const { return count; }
  [[nodiscard]] T get(std::uint32_t index) const {
    T value;
    pages.read(offset + std::uint64_t{index} * sizeof(T), &value, sizeof value);
    return value;
  }
  void set(std::uint32_t index, const T& value) {
    pages.write(offset + std::uint64_t{index} * sizeof(T), &value, sizeof value);
  }
};

class FileIndexView final : public IndexView {
 public:
  FileIndexView(os::RandomAccessFile file, const Header& header)
      : header_(header),
        pages_(std::move(file), file_bytes(header)),
        slots_{pages_, kTablesOffset, header.taken_slots},
        cells_{pages_, holders_offset(header), header.holder_cells},
        taken_(slots_),
        holders_(cells_) {}

  [[nodiscard]] std::uint64_t reservation_count() const override { return header_.reservations; }

  [[nodiscard]] std::optional<net::Address> next_free(const net::Address& first, const net::Address& last) override {
    const auto number = taken_.next_free(number_of(first), number_of(last));
    return number ? std::optional(address_of(*number, first.family())) : std::nullopt;
  }

  [[nodiscard]] std::vector<net::Address> with_hash(std::uint32_t hash) override {
    std::vector<net::Address> found;
    holders_.for_each(hash, [&](SparsePlace place) {
      const auto number = taken_.number_at(place);
      if (number) {
        found.push_back(address_of(*number));
      } else {
        contradicts_itself_ = true;
      }
    });
    std::sort(found.begin(), found.end());
    return found;
  }

  void add(const net::Address& address, std::uint32_t hash) override {
    const net::U128 number = number_of(address);
    switch (taken_.take(number)) {
      case SparseTable<Slots>::Took::yes_in_new_slot:
        ++header_.used_taken_slots;
        ++header_.reservations;
        break;
      case SparseTable<Slots>::Took::yes:
        ++header_.reservations;
        break;
      case SparseTable<Slots>::Took::no:
      case SparseTable<Slots>::Took::no_room:
        contradicts_itself_ = true;
        return;
    }
    const auto place = taken_.place_of(number);
    if (place && holders_.add(hash, *place)) {
      ++header_.holders;
    } else {
      contradicts_itself_ = true;
    }
  }

  void remove(const net::Address& address, std::uint32_t hash) override {
    const net::U128 number = number_of(address);
    const auto place = taken_.place_of(number);
    if (!place || !holders_.remove(hash, *place) || !taken_.give_back(number)) {
      contradicts_itself_ = true;
      return;
    }
    --header_.holders;
    --header_.reservations;
  }

  [[nodiscard]] bool failed() const override { return contradicts_itself_ || pages_.failed(); }

  /// Above three quarters probing gets slow.
  [[nodiscard]] bool has_room() const override {
    return header_.used_taken_slots < header_.taken_slots / 4 * 3 &&
           header_.holders < std::uint64_t{header_.holder_cells} / 4 * 3;
  }

  [[nodiscard]] Result<void> write_changes() override { return pages_.write_changes(); }

  [[nodiscard]] Result<void> confirm(const os::DirectoryStamp& stamp) override {
    set_stamp(header_, stamp);
    header_.checksum = checksum_of(header_);
    return pages_.write_through(0, &header_, sizeof header_);
  }

 private:
  using Slots = PagedArray<SparseSlot>;
  using Cells = PagedArray<std::uint64_t>;

  Header header_;
  Pages pages_;
  Slots slots_;
  Cells cells_;
  SparseTable<Slots> taken_;
  HolderTable<Cells> holders_;
  bool contradicts_itself_ = false;
};

constexpr const char* kIndexDirectory = ".croft";

std::string index_directory(const std::string& data_dir) { return data_dir + "/" + kIndexDirectory; }

[[nodiscard]] Result<os::RandomAccessFile> create_index_file(const std::string& data_dir, const std::string& path) {
  auto file = os::RandomAccessFile::create(path);
  if (file || file.error().code != ErrorCode::not_found) return file;
  TRY_VOID(os::make_private_directory(index_directory(data_dir)));
  return os::RandomAccessFile::create(path);
}

}  // namespace

std::string index_path(const std::string& data_dir, const std::string& network) {
  return index_directory(data_dir) + "/" + network + ".index";
}

std::unique_ptr<IndexView> IndexView::open(const std::string& path, const os::DirectoryStamp& stamp,
                                           const Clock& clock) {
  auto file = os::RandomAccessFile::open(path);
  if (!file || !*file) return nullptr;
  Header header;
  const auto read = (*file)->read_at(0, &header, sizeof header);
  if (!read || !*read || !is_sound(header) || !counts_for(header, stamp)) return nullptr;
  if (!counts_now(header, clock.now())) return nullptr;
  const auto size = (*file)->size();
  if (!size || *size != file_bytes(header)) return nullptr;
  return std::make_unique<FileIndexView>(**std::move(file), header);
}

Result<void> write_index(const std::string& data_dir, const std::string& network, const ScannedView& view,
                         const os::DirectoryStamp& stamp, const Instant& now) {
  const std::vector<SparseSlot>& slots = view.taken().slots();
  const std::vector<std::uint64_t>& cells = view.holder_cells();
  Header header;
  header.taken_slots = static_cast<std::uint32_t>(slots.size());
  header.used_taken_slots = view.taken().used_slots();
  header.holder_cells = static_cast<std::uint32_t>(cells.size());
  header.holders = view.holder_count();
  header.reservations = view.reservation_count();
  header.boot = now.boot.bytes;
  header.read_at_since_boot_ns = now.since_boot.count();
  set_stamp(header, stamp);
  header.checksum = checksum_of(header);

  const std::string path = index_path(data_dir, network);
  const std::string fresh = path + ".new";
  TRY(const os::RandomAccessFile file, create_index_file(data_dir, fresh));
  TRY_VOID(file.write_at(kTablesOffset, slots.data(), slots.size() * sizeof(SparseSlot)));
  TRY_VOID(file.write_at(holders_offset(header), cells.data(), cells.size() * sizeof(std::uint64_t)));
  TRY_VOID(file.write_at(0, &header, sizeof header));
  return os::rename_file(fresh, path);
}

}  // namespace croft::store::hostlocal
