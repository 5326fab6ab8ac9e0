package listing_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/belay-run/belay/internal/listing"
)

// SPEC K-16
func TestTheBudgetGrowsWithTheWindow(t *testing.T) {
	t.Parallel()
	for window, want := range map[int]int{0: 2000, 8_000: 2000, 100_000: 2000, 100_050: 2001, 200_000: 4000, 1_000_000: 20_000} {
		if got := listing.Budget(window); got != want {
			t.Errorf("Budget(%d) = %d, want %d", window, got, want)
		}
	}
}

// A list stays within its budget, and says exactly how many entries it leaves out.
//
// SPEC K-16, K-04
func TestAListCountsWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"skill", "subagent"}).Draw(t, "kind")
		entries := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) listing.Entry {
			return listing.Entry{Name: rapid.StringMatching(`[a-zö<"]{1,20}`).Draw(t, "name"), Description: rapid.StringMatching(`[a-zö<& \n]{0,80}`).Draw(t, "description")}
		}), 0, 30).Draw(t, "entries")
		budget := rapid.IntRange(0, 800).Draw(t, "budget")
		text, left := listing.Render(kind, entries, budget)
		described := 0
		for _, e := range entries {
			if strings.TrimSpace(e.Description) != "" {
				described++
			}
		}
		named := strings.Count(text, "<"+kind+" name=")
		if named+left.Names != len(entries) || left.Total != len(entries) {
			t.Fatalf("%d of %d are listed, and the list counts %+v:\n%s", named, len(entries), left, text)
		}
		if got := strings.Count(text, "</"+kind+">"); left.Names == 0 && got+left.Descriptions != described || left.Names > 0 && got+left.Descriptions > 0 {
			t.Fatalf("%d of %d descriptions are listed, and the list counts %+v:\n%s", got, described, left, text)
		}
		if comment := fmt.Sprintf("<!-- %d more %ss omitted -->", left.Names, kind); strings.Contains(text, "<!--") != (left.Names > 0) || left.Names > 0 && !strings.Contains(text, comment) {
			t.Fatalf("the list leaves out %d names:\n%s", left.Names, text)
		}
		if size := utf8.RuneCountInString(text); size > listing.CharactersPerToken*budget && named > 0 {
			t.Fatalf("the list has %d characters, want %d at most:\n%s", size, listing.CharactersPerToken*budget, text)
		}
		if message := left.Message(kind, budget); (message == "") != (left.Names == 0 && left.Descriptions == 0) {
			t.Fatalf("the message is %q for %+v", message, left)
		}
	})
}

// SPEC K-16
func TestTheMessageSaysWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	for want, left := range map[string]listing.LeftOut{
		"": {Total: 3},
		"the model sees 2 of 3 skills without a description: the list may have at most 7 tokens.": {Total: 3, Descriptions: 2},
		"the model does not see 1 of 1 skill: the list may have at most 7 tokens.":                {Total: 1, Names: 1},
	} {
		if got := left.Message("skill", 7); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("the message is %q, want %q", got, want)
		}
	}
}
