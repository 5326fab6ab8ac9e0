package memory_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/memory"
)

// Memories are still there when the file is opened again.
func TestMemoriesAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	s := open(t, path)
	added := add(t, s, memory.Draft{
		Text: "Ann lives in Berlin.", Tags: []string{"Home", "city", "home"}, Scope: memory.Scope{Kind: memory.User, Name: "ann"}, Session: "one", Turn: "1-abc",
	})[0]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := open(t, path).Lookup(t.Context(), added.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != "Ann lives in Berlin." || got.Scope.String() != "user:ann" || got.State != memory.Active || got.Session != "one" || got.Turn != "1-abc" ||
		!slices.Equal(got.Tags, []string{"city", "home"}) || !got.Created.Equal(added.Created) || !got.Updated.Equal(added.Updated) {
		t.Errorf("read again: %+v, want what was added", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v, want it for its owner alone", info.Mode(), err)
	}
}

// The same text is stored only once. The memory gets the tags of both drafts. A proposal
// becomes active if it is added again as active.
func TestTheSameTextIsOneMemory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	s := open(t, path)
	first := add(t, s, memory.Draft{Text: "Tests run with make test.", Tags: []string{"a"}, Proposed: true})[0]
	wantTexts(t, "a proposal is found", search(t, s, "tests"))
	second := add(t, s, memory.Draft{Text: "tests run  with make test", Tags: []string{"build"}})[0]
	if second.ID != first.ID || second.State != memory.Active || !slices.Equal(second.Tags, []string{"a", "build"}) {
		t.Errorf("added again: %+v, want the first one, active, with both tags", second)
	}
	wantTexts(t, "found by its new tag", search(t, s, "build"), "Tests run with make test.")
	third := add(t, s, memory.Draft{Text: "Tests run with make test.", Proposed: true})[0]
	if third.State != memory.Active {
		t.Errorf("an active memory that is proposed again is %s, want it to stay active", third.State)
	}
	other := add(t, s, memory.Draft{Text: "Tests run with make test.", Scope: memory.Scope{Kind: memory.Project, Name: "x"}})[0]
	if other.ID == first.ID {
		t.Error("the same text in another scope is the same memory, want another")
	}
	sound(t, path)
}

// A search sees only the given scopes. Memories in other scopes do not change its result.
func TestSearchKeepsToItsScopes(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	ann, bob := memory.Scope{Kind: memory.User, Name: "ann"}, memory.Scope{Kind: memory.User, Name: "bob"}
	add(t, s, memory.Draft{Text: "The favourite colour is green.", Scope: ann}, memory.Draft{Text: "The favourite colour is red.", Scope: bob})
	wantTexts(t, "Ann's", search(t, s, "favourite colour?", ann), "The favourite colour is green.")
	wantTexts(t, "Bob's", search(t, s, "favourite colour?", bob), "The favourite colour is red.")
	wantTexts(t, "nobody's", search(t, s, "favourite colour?", memory.Scope{Kind: memory.Agent, Name: "ann"}))
	if got := search(t, s, "favourite colour?"); len(got) != 2 {
		t.Errorf("without a scope: %q, want both", got)
	}
}

func TestSearchFinds(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, text := range []string{
		"Ann's dog is called Rex.", "The stories are kept in the wiki.", "Café Zürich opens at nine.", "数据库密码在保险库里", "Deploys go through the staging cluster first.",
		"The staging cluster is in Frankfurt.",
	} {
		add(t, s, memory.Draft{Text: text})
	}
	for _, test := range []struct{ rule, query, want string }{
		{"a plural finds the singular", "dogs", "Ann's dog is called Rex."},
		{"a singular finds the plural", "where is the story", "The stories are kept in the wiki."},
		{"case and accents make no difference", "CAFE ZURICH", "Café Zürich opens at nine."},
		{"a script without spaces is found by a part of it", "密码", "数据库密码在保险库里"},
		{"a rare word counts more than common ones", "staging cluster Frankfurt", "The staging cluster is in Frankfurt."},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if got := search(t, s, test.query); len(got) == 0 || got[0] != test.want {
				t.Errorf("%q finds %q, want %q first", test.query, got, test.want)
			}
		})
	}
	wantTexts(t, "words that every text has", search(t, s, "is the in at"))
}

// If two memories match equally well, the newer one comes first.
func TestTheNewerComesFirst(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	add(t, s, memory.Draft{Text: "The meeting is on Monday."})
	add(t, s, memory.Draft{Text: "The meeting is on Tuesday."})
	wantTexts(t, "told last", search(t, s, "meeting"), "The meeting is on Tuesday.", "The meeting is on Monday.")
	add(t, s, memory.Draft{Text: "the meeting is on monday"})
	wantTexts(t, "told again", search(t, s, "meeting"), "The meeting is on Monday.", "The meeting is on Tuesday.")
}

// Search does not interpret a user's text as query syntax.
//
// SPEC E-08
func TestQuerySyntaxInTextBreaksNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	s := open(t, path)
	add(t, s, memory.Draft{Text: "The quick fox is brown."})
	for _, text := range []string{
		`fox" OR "`, `fox*`, `^fox`, `words:fox`, `NEAR(fox, 2)`, `fox AND NOT`, `(fox`, `fox)`, `"`, `""`, `'`, `fox'; DROP TABLE memories; --`, `{fox}:`, `-fox`, `+fox`,
		"fox\x00brown", "\xff\xfefox", "fox\\", `1xfox`, `:fox`, "fo\u200bx fox",
	} {
		got := search(t, s, text)
		if strings.Contains(text, "fox") && text != "1xfox" && (len(got) != 1 || got[0] != "The quick fox is brown.") {
			t.Errorf("%q finds %q, want the memory that has one of its words", text, got)
		}
	}
	sound(t, path)
}

// Every memory is found by its own words, and no text causes an error.
func TestWhatIsRememberedIsFound(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
		added, err := s.Add(t.Context(), memory.Draft{Text: text + " marker"})
		if err != nil {
			t.Fatalf("Add(%q): %v", text, err)
		}
		if !utf8.ValidString(added[0].Text) {
			t.Fatalf("%q is stored as %q, want UTF-8", text, added[0].Text)
		}
		found, err := s.Search(t.Context(), memory.Query{Text: text + " marker", Limit: 64})
		if err != nil {
			t.Fatalf("Search(%q): %v", text, err)
		}
		if len(found) == 0 {
			t.Fatalf("nothing is found by %q, want what has the word marker", text)
		}
		if _, err := s.Forget(t.Context(), added[0].ID); err != nil {
			t.Fatal(err)
		}
	})
}

// A memory that is too long is rejected, not cut. A query can have any length.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	long := "zebra " + strings.Repeat("lorem ipsum dolor sit amet ", 40_000)
	if _, err := s.Add(t.Context(), memory.Draft{Text: long}); !errors.Is(err, memory.ErrTooLong) {
		t.Errorf("Add of 1 MiB: %v, want %v", err, memory.ErrTooLong)
	}
	if _, err := s.Add(t.Context(), memory.Draft{Text: " \n\x00 "}); !errors.Is(err, memory.ErrEmpty) {
		t.Errorf("Add of nothing: %v, want %v", err, memory.ErrEmpty)
	}
	add(t, s, memory.Draft{Text: "The zebra is striped. " + strings.Repeat("ä", memory.MaxText-30)})
	if got := search(t, s, long); len(got) != 1 {
		t.Errorf("a query of 1 MiB finds %d memories, want the one about the zebra", len(got))
	}
	if _, err := s.Add(t.Context(), memory.Draft{Text: "good"}, memory.Draft{Text: long}); err == nil || len(search(t, s, "good")) != 0 {
		t.Errorf("of two drafts one is refused (%v) and the other stored, want all or none", err)
	}
}

// After Forget, no part of the text is in the tables, the index, the log or the free pages.
//
// SPEC E-08
func TestForgettingLeavesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	s := open(t, path)
	var kept []memory.Draft
	for i := range 300 {
		kept = append(kept, memory.Draft{Text: fmt.Sprintf("Fact number %d is about thing%d.", i, i)})
	}
	add(t, s, kept[:150]...)
	secret := add(t, s, memory.Draft{Text: "The treasure is buried beneath Xanadupalace.", Tags: []string{"kublaikhan"}})[0]
	proposal := add(t, s, memory.Draft{Text: "The Xanadupalace has a pleasuredome.", Proposed: true})[0]
	add(t, s, kept[150:]...)
	has := func(word string) bool {
		t.Helper()
		for _, suffix := range []string{"", "-wal"} {
			data, err := os.ReadFile(path + suffix)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if bytes.Contains(bytes.ToLower(data), []byte(word)) {
				return true
			}
		}
		return false
	}
	if !has("xanadupalace") || !has("kublaikhan") {
		t.Fatal("the file does not hold the text: the test looks in the wrong place")
	}
	for _, id := range []string{secret.ID, proposal.ID, secret.ID} {
		forgotten, err := s.Forget(t.Context(), id)
		if err != nil || forgotten.State != memory.Forgotten || forgotten.Text != "" {
			t.Fatalf("Forget: %+v, %v", forgotten, err)
		}
	}
	for _, word := range []string{"xanadu", "palace", "kublaikhan", "buried", "pleasuredome"} {
		if has(word) {
			t.Errorf("the file still holds %q", word)
		}
	}
	wantTexts(t, "found", search(t, s, "treasure Xanadupalace kublaikhan"))
	if got, err := s.Lookup(t.Context(), secret.ID); err != nil || got.State != memory.Forgotten || got.Text != "" || got.Tags != nil {
		t.Errorf("Get: %+v, %v, want that it was forgotten", got, err)
	}
	if _, err := s.Accept(t.Context(), proposal.ID); !errors.Is(err, memory.ErrForgotten) {
		t.Errorf("Accept of what was forgotten: %v, want %v", err, memory.ErrForgotten)
	}
	if _, err := s.Forget(t.Context(), "m-nothing"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Forget of what never was: %v, want %v", err, memory.ErrNotFound)
	}
	if again := add(t, s, memory.Draft{Text: "The treasure is buried beneath Xanadupalace."})[0]; again.ID == secret.ID {
		t.Error("what is said again is the memory that was forgotten, want a new one")
	}
	sound(t, path)
}

// A search does not find a proposal before it is accepted.
//
// SPEC E-08
func TestProposalsWait(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	s := open(t, path)
	proposal := add(t, s, memory.Draft{Text: "The staging server is called Zeus.", Proposed: true})[0]
	wantTexts(t, "before", search(t, s, "staging server"))
	accepted, err := s.Accept(t.Context(), proposal.ID)
	if err != nil || accepted.State != memory.Active {
		t.Fatalf("Accept: %+v, %v", accepted, err)
	}
	wantTexts(t, "after", search(t, s, "staging server"), "The staging server is called Zeus.")
	if _, err := s.Accept(t.Context(), proposal.ID); err != nil {
		t.Errorf("accepting twice: %v, want that it does no harm", err)
	}
	if _, err := s.Accept(t.Context(), "m-nothing"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Accept of what never was: %v, want %v", err, memory.ErrNotFound)
	}
	sound(t, path)
}

// Several stores with several writers can use the same file. Nothing is lost, and the index
// matches the memories.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "memory.db")
	const stores, writers, each = 3, 4, 12
	var done sync.WaitGroup
	for i := range stores {
		done.Go(func() {
			s, err := memory.Open(t.Context(), path, nil) // several stores create the file at the same time
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = s.Close() }()
			var writing sync.WaitGroup
			for j := range writers {
				writing.Go(func() {
					for k := range each {
						added, err := s.Add(t.Context(), memory.Draft{Text: fmt.Sprintf("shared word and thing%dx%dx%d", i, j, k)}, memory.Draft{Text: fmt.Sprintf("Everybody says number%d.", k)})
						if err == nil && k%3 == 0 {
							_, err = s.Forget(t.Context(), added[0].ID)
						}
						if err != nil {
							t.Error(err)
						}
						if _, err := s.Search(t.Context(), memory.Query{Text: "shared thing"}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			writing.Wait()
		})
	}
	done.Wait()
	s := open(t, path)
	if got, want := len(texts(t, s, memory.Active)), stores*writers*each*2/3+each; got != want {
		t.Errorf("%d memories are active, want %d", got, want)
	}
	if got, want := len(texts(t, s, memory.Forgotten)), stores*writers*each/3; got != want {
		t.Errorf("%d memories are forgotten, want %d", got, want)
	}
	sound(t, path)
}

// If all words of a query are common, a search still finds old memories that have several
// of them.
func TestCommonWordsTogether(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	add(t, s, memory.Draft{Text: "The favourite colour of the bridge is teal."})
	var drafts []memory.Draft
	for i := range 1500 {
		drafts = append(drafts, memory.Draft{Text: fmt.Sprintf("The favourite dish number %d.", i)}, memory.Draft{Text: fmt.Sprintf("A colour in the box with number %d.", i)})
	}
	add(t, s, drafts...)
	if got := search(t, s, "what is the favourite colour?"); len(got) == 0 || got[0] != "The favourite colour of the bridge is teal." {
		t.Errorf("found %q, want what has both words first", got)
	}
	first := search(t, s, "favourite number")
	for range 5 {
		wantTexts(t, "the same search", search(t, s, "favourite number"), first...)
	}
}

// Open rejects a file that is not a memory file, and does not change it.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, foreign := filepath.Join(dir, "text"), filepath.Join(dir, "belay.db")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	openSessions(t, foreign)
	for path, want := range map[string]string{
		"": "this is not a file name", dir: "directory", text: "use another file", foreign: "another program", filepath.Join(dir, "no", "such", "m.db"): "its directory",
	} {
		s, err := memory.Open(t.Context(), path, nil)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v, want %q in it", path, err, want)
		}
	}
}
