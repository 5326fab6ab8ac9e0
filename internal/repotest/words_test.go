package repotest_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// oddPhrases are phrases that readers had to read twice, with what to write
// instead. A phrase is written in parts here, so that this file passes.
var oddPhrases = []struct{ odd, plain string }{
	{"cannot be" + " told", "cannot be determined, or is unknown"},
	{"wants a" + " word", "needs your approval"},
	{"gone on" + " with", "resumed, or continued"},
	{"is" + " had", "exists"},
	{"to be" + " had", "available"},
	{"sudden" + " end", "panic"},
	{"slip of" + " the pen", "typing error"},
	{"came to" + " nothing", "failed"},
	{"come to" + " pass", "happen"},
	{"sums the" + " context up", "summarizes the context"},
	{"let go" + " of", "released, settled, or closed"},
	{"lets go" + " of", "releases, settles, or closes"},
	{"stands or" + " falls", "succeeds or fails"},
	{"seen" + " through", "completed"},
	{"kept" + " waiting", "blocked, or delayed"},
	{"at the" + " mercy", "the plain fact"},
	{"comes" + " where", "is in the place of"},
}

// oddPhrase matches all odd phrases, also if a line break is inside a phrase.
var oddPhrase = func() *regexp.Regexp {
	var all []string
	for _, p := range oddPhrases {
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(p.odd), " ", `(?:\s|//)+`))
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(all, "|") + `)\b`)
}()

// oddPhrasesIn returns the lines of a text that contain an odd phrase.
func oddPhrasesIn(name, text string) []string {
	var problems []string
	for _, at := range oddPhrase.FindAllStringIndex(text, -1) {
		found := strings.Join(strings.Fields(strings.ReplaceAll(text[at[0]:at[1]], "//", " ")), " ")
		i := slices.IndexFunc(oddPhrases, func(p struct{ odd, plain string }) bool { return strings.EqualFold(p.odd, found) })
		problems = append(problems, fmt.Sprintf("%s:%d: %q needs a second reading: write %s", name, 1+strings.Count(text[:at[0]], "\n"), found, oddPhrases[i].plain))
	}
	return problems
}

func TestPlainWords(t *testing.T) {
	t.Parallel()
	files, err := repository(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if !slices.Contains([]string{".go", ".md", ".txtar", ".yaml"}, path.Ext(name)) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range oddPhrasesIn(name, string(text)) {
			t.Error(problem)
		}
	}
}

func TestPlainWordsRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"cannot determine the path":                      0,
		"it cannot be" + " told":                         1,
		"// it Cannot\n// be" + " told, and is" + " had": 2,
		"the visit" + " had an end":                      0,
	} {
		if got := oddPhrasesIn("x.go", text); len(got) != want {
			t.Errorf("%q: found %q, want %d", text, got, want)
		}
	}
}
