package sqlite_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/filetest"
	"github.com/belay-run/belay/store/sqlite"
)

// fullFile makes a store file in which every table has rows. The file also has free pages.
var fullFile = filetest.Copies("belay.db", func(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	for i := range 12 {
		id := fmt.Sprint("session-", i)
		stored, err := s.Open(ctx, id)
		if err != nil {
			return err
		}
		c := &belay.Commit{Session: id, Epoch: stored.Epoch, Approvals: []belay.Approval{{ID: "ap-" + id, Session: id, Call: "call", Tool: "note", Hash: "sha256:x"}}}
		for seq := range int64(6) {
			c.Messages = append(c.Messages, say(id, stored.Epoch, seq+1, strings.Repeat(fmt.Sprint("message ", seq, " of ", id, ". "), 60)).Messages...)
			r := run(fmt.Sprint(id, "-", seq), hook.Completed)
			r.Scope.Session = id
			c.Runs = append(c.Runs, r)
		}
		c.Messages = append(c.Messages, say(id, stored.Epoch, 7, strings.Repeat("a long one ", 2000)).Messages...) // a message that needs its own pages
		if err := errors.Join(s.Commit(ctx, c), s.Release(ctx, id, stored.Epoch)); err != nil {
			return err
		}
	}
	return errors.Join(s.FreePages(ctx, 3), s.Close())
})

// contents returns the content of a store as text, to compare two stores.
func contents(s *sqlite.Store) (map[string]string, error) {
	ctx, all := context.Background(), map[string]string{}
	for info, err := range s.Sessions(ctx, belay.SessionFilter{}) {
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		if err := s.Export(ctx, &b, info.ID); err != nil {
			return nil, err
		}
		all[info.ID] = b.String()
	}
	return all, nil
}

// wantNoSilentLoss opens and uses a damaged store. An error must report the damage, or all
// content must be unchanged.
func wantNoSilentLoss(t *testing.T, file string, before map[string]string) (told bool) {
	t.Helper()
	ctx := context.Background()
	tell := func(what string, err error) bool {
		if err != nil && !errors.Is(err, sqlite.ErrCorrupt) && !errors.Is(err, sqlite.ErrNotStore) && !errors.Is(err, sqlite.ErrNewer) {
			t.Errorf("%s gives %v, which does not say that the file is damaged", what, err)
		}
		return err != nil
	}
	s, err := sqlite.Open(ctx, file, nil)
	if tell("opening", err) {
		return true
	}
	defer func() { told = tell("closing", s.Close()) || told }()
	after, err := contents(s)
	if tell("reading", err) {
		return true
	}
	if !maps.Equal(before, after) {
		t.Errorf("without a word there are %d sessions, and before there were %d: something is lost", len(after), len(before))
	}
	stored, err := s.Open(ctx, "new")
	if tell("opening a session", err) {
		return true
	}
	return tell("a commit", s.Commit(ctx, say("new", stored.Epoch, 1, "one")))
}

func write(t testing.TB, file string, at int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, wrote := f.WriteAt(data, at)
	if err := errors.Join(wrote, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const pageSize = 4096

// usedPage returns the number of the first page from the given one on that is not free. The
// content of a free page does not matter. Numbers begin with 0.
func usedPage(data []byte, from int) int64 {
	word := func(page, at int) int { return int(binary.BigEndian.Uint32(data[page*pageSize+4*at:])) }
	free := make(map[int]bool)
	for trunk := word(0, 8); trunk != 0; trunk = word(trunk-1, 0) {
		free[trunk-1] = true
		for i := range word(trunk-1, 1) {
			free[word(trunk-1, 2+i)-1] = true
		}
	}
	for free[from] || !slices.Contains([]byte{2, 5, 10, 13}, data[from*pageSize]) { // SQLite checks only pages that begin so: they are parts of a tree
		from++
	}
	return int64(from)
}

// Open reports a damaged file.
//
// SPEC L-14
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	origin := fullFile(t)
	data := read(t, origin)
	pages := len(data) / pageSize
	free := int64(binary.BigEndian.Uint32(data[32:])) - 1 // the first free page
	if free < 1 || pages < 40 {
		t.Fatalf("there are %d pages, and the first free one is %d: the test proves nothing", pages, free)
	}
	middle := usedPage(data, pages/2) * pageSize
	noise := bytes.Repeat([]byte{0xa5}, pageSize)
	for name, damage := range map[string]func(t testing.TB, file string){
		"the first bytes":             func(t testing.TB, file string) { t.Helper(); write(t, file, 0, noise[:16]) },
		"the page size":               func(t testing.TB, file string) { t.Helper(); write(t, file, 16, []byte{0x20, 0}) },
		"the whole header":            func(t testing.TB, file string) { t.Helper(); write(t, file, 0, noise[:100]) },
		"the number of pages":         func(t testing.TB, file string) { t.Helper(); write(t, file, 28, []byte{0, 0, 0, 9}) },
		"the number of free pages":    func(t testing.TB, file string) { t.Helper(); write(t, file, 36, []byte{0, 0, 0, 99}) },
		"the first free page":         func(t testing.TB, file string) { t.Helper(); write(t, file, 32, []byte{0, 0, 0, 7}) },
		"the text encoding":           func(t testing.TB, file string) { t.Helper(); write(t, file, 56, []byte{0, 0, 0, 2}) },
		"the mark of the program":     func(t testing.TB, file string) { t.Helper(); write(t, file, 68, noise[:4]) },
		"the list of tables":          func(t testing.TB, file string) { t.Helper(); write(t, file, 100, noise[:pageSize-100]) },
		"the list of tables is empty": func(t testing.TB, file string) { t.Helper(); write(t, file, 100, []byte{13, 0, 0, 0, 0, 0x10, 0, 0}) },
		"the first page":              func(t testing.TB, file string) { t.Helper(); write(t, file, 0, noise) },
		"the first page is zero":      func(t testing.TB, file string) { t.Helper(); write(t, file, 0, make([]byte, pageSize)) },
		"the map of pages":            func(t testing.TB, file string) { t.Helper(); write(t, file, pageSize, noise) },
		"the list of free pages":      func(t testing.TB, file string) { t.Helper(); write(t, file, free*pageSize, noise) },
		"a page in the middle":        func(t testing.TB, file string) { t.Helper(); write(t, file, middle, noise) },
		"a page in the middle is zero": func(t testing.TB, file string) {
			t.Helper()
			write(t, file, middle, make([]byte, pageSize))
		},
		"a page in the middle is another page": func(t testing.TB, file string) {
			t.Helper()
			write(t, file, middle, data[5*pageSize:6*pageSize])
		},
		"the second half is zero": func(t testing.TB, file string) {
			t.Helper()
			write(t, file, int64(pages/2)*pageSize, make([]byte, pages/2*pageSize))
		},
		"the last page is missing":          func(t testing.TB, file string) { t.Helper(); truncate(t, file, int64(len(data)-pageSize)) },
		"half of the file is missing":       func(t testing.TB, file string) { t.Helper(); truncate(t, file, int64(pages/2)*pageSize) },
		"half a page is missing":            func(t testing.TB, file string) { t.Helper(); truncate(t, file, int64(len(data)-pageSize/2)) },
		"all but the first page is missing": func(t testing.TB, file string) { t.Helper(); truncate(t, file, pageSize) },
		"all but the header is missing":     func(t testing.TB, file string) { t.Helper(); truncate(t, file, 100) },
		"everything is missing":             func(t testing.TB, file string) { t.Helper(); truncate(t, file, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := used(t, data)
			damage(t, file)
			_, err := sqlite.Open(t.Context(), file, nil)
			wantError(t, "opening it", err, sqlite.ErrCorrupt, file, "restore a backup")
		})
	}
}

// used makes a file from data, and opens and closes it as a store.
func used(t testing.TB, data []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "belay.db")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	closeStore(t, openFile(t, file, nil))
	if !bytes.Equal(read(t, file)[100:], data[100:]) { // the first 100 bytes contain counters
		write(t, file, 0, data)
	}
	return file
}

func truncate(t testing.TB, file string, size int64) {
	t.Helper()
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
}

// If a bit in the header of a page changes, no data is lost silently.
//
// SPEC L-14
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	origin := fullFile(t)
	s := openFile(t, origin, nil)
	before, err := contents(s)
	if err != nil || len(before) < 5 {
		t.Fatalf("%d sessions are stored, %v", len(before), err)
	}
	closeStore(t, s)
	data := read(t, origin)
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	told, tries := 0, 60
	for range tries {
		page := random.IntN(len(data) / pageSize)
		at := int64(page)*pageSize + int64(random.IntN(12))
		switch {
		case page == 0:
			at = int64(random.IntN(112))
		case data[page*pageSize] == 0: // an overflow page, which begins with the number of the next page
			at = int64(page)*pageSize + int64(random.IntN(4))
		}
		file := used(t, data)
		flipped := data[at] ^ 1<<random.IntN(8)
		write(t, file, at, []byte{flipped})
		if wantNoSilentLoss(t, file, before) {
			told++
		}
		if t.Failed() {
			t.Fatalf("byte %d of page %d is %#x instead of %#x", at-int64(page)*pageSize, page, flipped, data[at])
		}
	}
	if told < tries/4 {
		t.Errorf("%d of %d damages are told: is nobody looking?", told, tries)
	}
}

// If the log is damaged after a crash, stored data is lost. Open reports that. It must not
// take the damage for the end of the log.
//
// SPEC L-14
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	_, kill := another(t, "chatter", file)
	kill()
	files := map[string][]byte{}
	for _, end := range []string{"", "-wal", "-shm"} {
		files[end] = read(t, file+end)
	}
	const frame = pageSize + 24
	frames := (len(files["-wal"]) - 32) / frame
	if frames < 12 {
		t.Fatalf("the log has %d frames: the test proves nothing", frames)
	}
	flip := func(at int) func([]byte) []byte {
		return func(log []byte) []byte { log[at] ^= 0x10; return log }
	}
	for name, damage := range map[string]func(log []byte) []byte{
		"the first bytes of its header":    flip(0),
		"the salt of its header":           flip(17),
		"the checksum of its header":       flip(25),
		"the first frame":                  flip(32 + 24 + 100),
		"the salt of a frame":              flip(32 + frames/2*frame + 9),
		"the checksum of a frame":          flip(32 + frames/2*frame + 17),
		"the page of a frame":              flip(32 + frames/2*frame + 24 + 2000),
		"a frame is zero":                  func(log []byte) []byte { clear(log[32+frames/2*frame:][:frame]); return log },
		"the last frame":                   flip(32 + (frames-1)*frame + 24 + 100),
		"it ends in the middle":            func(log []byte) []byte { return log[:32+frames/2*frame] },
		"it ends in the middle of a frame": func(log []byte) []byte { return log[:32+frames/2*frame+100] },
		"it is empty":                      func([]byte) []byte { return nil },
		"it is gone":                       nil,
	} {
		for _, indexed := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", with its index: ", indexed), func(t *testing.T) {
				t.Parallel()
				file := filepath.Join(t.TempDir(), "belay.db")
				put := func(end string, data []byte) {
					if err := os.WriteFile(file+end, data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				put("", files[""])
				if damage != nil {
					put("-wal", damage(slices.Clone(files["-wal"])))
				}
				if indexed {
					put("-shm", files["-shm"])
				}
				s, err := sqlite.Open(t.Context(), file, nil)
				// If the index is missing, a log that ends early looks complete.
				if ends := strings.HasPrefix(name, "it ") || name == "the last frame"; !indexed && ends {
					if err == nil {
						err = s.Close()
					}
					if err != nil {
						t.Errorf("opening it gives %v, want what can be read", err)
					}
					return
				}
				wantError(t, "opening it", err, sqlite.ErrCorrupt, file, "the write-ahead log is damaged", "wal_checkpoint")
				reading := openFile(t, file, &sqlite.Options{ReadOnly: true})
				if _, err := contents(reading); err != nil {
					t.Errorf("reading gives %v, want what can be read", err)
				}
				if health, err := reading.Check(t.Context()); err != nil || len(health.Problems) == 0 {
					t.Errorf("Check finds %q, %v, want the damage", health.Problems, err)
				}
				closeStore(t, reading)
				if damage != nil && !bytes.Equal(read(t, file+"-wal"), damage(slices.Clone(files["-wal"]))) {
					t.Error("the log has changed: what is left of it must stay, because a person may repair it")
				}
			})
		}
	}
}

// A crash in the middle of a transaction is not damage: the end of the log was never stored
// completely.
//
// SPEC L-14
func TestTornLog(t *testing.T) {
	t.Parallel()
	file := newFile(t)
	_, kill := another(t, "chatter", file)
	kill()
	log := read(t, file+"-wal")
	for name, tail := range map[string][]byte{
		"part of a frame":              log[32:][:1000],
		"a frame of no transaction":    append(slices.Clone(log[32:][:pageSize+24]), 1),
		"the beginning of one":         append(append([]byte{0, 0, 0, 3, 0, 0, 0, 0}, log[16:24]...), make([]byte, 8+pageSize)...),
		"one that was written in part": append(append(append([]byte{0, 0, 0, 3, 0, 0, 0, 0}, log[16:24]...), make([]byte, 8+pageSize)...), append(append([]byte{0, 0, 0, 4, 0, 0, 0, 9}, log[16:24]...), make([]byte, 8+pageSize)...)...),
	} {
		for _, indexed := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", with its index: ", indexed), func(t *testing.T) {
				t.Parallel()
				crashed := filepath.Join(t.TempDir(), "belay.db")
				for end, data := range map[string][]byte{"": read(t, file), "-wal": append(slices.Clone(log), tail...), "-shm": read(t, file+"-shm")} {
					if !indexed && end == "-shm" {
						continue
					}
					if err := os.WriteFile(crashed+end, data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				s := openFile(t, crashed, nil)
				if got := texts(t, s, "a"); len(got) != chatter {
					t.Errorf("%d messages are stored, want all %d", len(got), chatter)
				}
			})
		}
	}
}

// chatter is how many messages childChatters stores.
const chatter = 8

// childChatters stores messages one by one.
func childChatters(ctx context.Context, s *sqlite.Store) error {
	stored, err := s.Open(ctx, "a")
	if err != nil {
		return err
	}
	for seq := range int64(chatter) {
		if err := s.Commit(ctx, say("a", stored.Epoch, seq+1, fmt.Sprint("message ", seq))); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stdout, "ready")
	return nil
}

// Open does not check a large file completely, so that opening stays fast.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), newFile(t)
	s := openFile(t, file, nil)
	stored := hold(t, s, "a")
	large := say("a", stored.Epoch, 1, strings.Repeat("x", 34<<20))
	commit(t, s, large)
	appendRuns(t, s, run("one", hook.Completed))
	var page int64
	if err := s.QueryRow(ctx, "SELECT rootpage FROM sqlite_schema WHERE name = 'runs'", &page); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = openFile(t, file, nil)
	if got := texts(t, s, "a"); len(got) != 1 || len(got[0]) != 34<<20 {
		t.Errorf("%d messages are stored, want the large one", len(got))
	}
	closeStore(t, s)
	write(t, file, 100, []byte{13, 0, 0, 0, 0, 0x10, 0, 0}) // the file has no tables now
	_, err := sqlite.Open(ctx, file, nil)
	wantError(t, "opening it without its tables", err, sqlite.ErrCorrupt, file)
}
