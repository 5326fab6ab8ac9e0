package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/acp"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/provider/scripted"
)

// The exchange in testdata/zed.txt has the shape that a real editor sends. The agent answers
// it message by message.
//
// SPEC U-05
func TestExchangeInTheShapeOfZed(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join("testdata", "zed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := project(t, map[string]string{"notes.md": "old\n"})
	opts := options(dir, scripted.Step{
		Thinking: "Hm.", Text: "Tidying.", Calls: []scripted.Call{{ID: "r", Tool: "read", Input: `{"path": "notes.md"}`}}, Pace: scripted.Pace{Chunk: 100},
	}, scripted.Step{
		Calls: []scripted.Call{{ID: "w", Tool: "write", Input: `{"path": "notes.md", "content": "new\n"}`}},
	}, scripted.Step{Text: "Done.", Pace: scripted.Pace{Chunk: 100}})
	opts.Settings = []host.Setting{{Path: "mode", Value: "strict"}}
	r := connectRaw(t, acp.Hosts(opts), nil)
	names := strings.NewReplacer("DIR", dir)
	for line := range strings.Lines(string(script)) {
		line = strings.TrimSuffix(line, "\n")
		if sent, ok := strings.CutPrefix(line, "> "); ok {
			r.send(names.Replace(sent))
			continue
		}
		want, ok := strings.CutPrefix(line, "< ")
		if !ok {
			continue
		}
		if !r.out.Scan() {
			t.Fatalf("the connection ended before %s", want)
		}
		if strings.HasSuffix(want, `"sessionId":"SESSION"}}`) {
			_, id, _ := strings.Cut(r.out.Text(), `"sessionId":"`)
			id, _, _ = strings.Cut(id, `"`)
			names = strings.NewReplacer("DIR", dir, "SESSION", id)
		}
		if want = names.Replace(want); !matches(r.out.Text(), want) {
			t.Fatalf("the agent sent\n%s\nwant\n%s", r.out.Text(), want)
		}
	}
}

// matches reports whether a text is like a pattern, in which … is anything.
func matches(text, pattern string) bool {
	pieces := strings.Split(pattern, "…")
	rest, ok := strings.CutPrefix(text, pieces[0])
	for _, piece := range pieces[1:] {
		at := strings.Index(rest, piece)
		if !ok || at < 0 {
			return false
		}
		rest = rest[at+len(piece):]
	}
	return ok && (rest == "" || strings.HasSuffix(pattern, "…"))
}
