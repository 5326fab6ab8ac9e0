package belay

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay/internal/spill"
)

// fit makes a result valid for the model and the store. A failure gets a class, render data
// becomes valid JSON, and text becomes valid UTF-8. If the text is too long, fit cuts its
// middle and writes the full text to a file.
func (t *turn) fit(c *call, r Result) Result {
	if r.IsError {
		orDefault(&r.Class, ClassFailed)
	}
	if r.Render != nil && !json.Valid(r.Render) {
		r.Render = json.RawMessage(contentOf(string(r.Render)))
	}
	r.Text = validText(r.Text)
	limit := t.resultLimit(c)
	if len(r.Text) <= limit {
		return r
	}
	size := utf8.RuneCountInString(r.Text)
	if size <= limit {
		return r
	}
	where := "the rest is lost"
	if file, err := t.spill(c, r.Text); err == nil {
		r.Spilled = file
		where = "the full text is in " + file
	} else {
		t.agent.opts.Logger.WarnContext(t.base, "the full text of a long result could not be stored", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
	}
	head, tail := limit*2/3, limit/3
	first, _ := firstCharacters(r.Text, head)
	r.Text = fmt.Sprintf("%s\n\n[... %d of %d characters left out; %s ...]\n\n%s",
		first, size-head-tail, size, where, lastCharacters(r.Text, tail))
	return r
}

// lastCharacters returns the last n code points of a valid UTF-8 text.
func lastCharacters(text string, n int) string {
	at := len(text)
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return text[at:]
}

// resultLimit returns how many characters of a call's result the model gets.
func (t *turn) resultLimit(c *call) int {
	if c.tool != nil && c.tool.traits.MaxResult > 0 {
		return c.tool.traits.MaxResult
	}
	return t.agent.opts.Limits.ResultCharacters
}

// spill writes a text to a file in the directory of the session. Only the user who runs
// this process can read the file. Its name consists of the turn's id, the number of the
// step and the call's id.
func (t *turn) spill(c *call, text string) (string, error) {
	dir, err := t.agent.spillDir()
	if err != nil {
		return "", err
	}
	name := strings.NewReplacer("/", "_", ":", "-").Replace(reference(t.scope.Turn, fmt.Sprint(c.Step), c.ID))
	return spill.Write(dir, t.scope.Session, name+".txt", text)
}

// spillDir returns the directory for long results. If Options.SpillDir is empty, the first
// call makes a temporary directory.
func (a *Agent) spillDir() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opts.SpillDir == "" {
		dir, err := os.MkdirTemp("", "belay-")
		if err != nil {
			return "", err
		}
		a.opts.SpillDir = dir
	}
	return a.opts.SpillDir, nil
}
