package toolbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
)

type editInput struct {
	Path       string `json:"path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

func (f *files) editTool() belay.Tool { //nolint:ireturn // a tool is used through the interface
	return newTool("edit", "Replaces text in a file of the project, which must have been read before. "+
		"The old text must occur exactly once in the file, including white space and without the line numbers that read shows; add surrounding lines to make it unique.", `{
		"type": "object", "additionalProperties": false, "required": ["path", "old_string", "new_string"], "properties": {
			"path": {"type": "string", "description": "the file, relative to the project"},
			"old_string": {"type": "string", "description": "the text to replace, exactly as it is in the file"},
			"new_string": {"type": "string", "description": "the text to put in its place"},
			"replace_all": {"type": "boolean", "description": "replace every occurrence instead of the only one"}
		}}`, belay.ToolTraits{Serial: true, NeedsAuthorizer: true}, f.doEdit)
}

func (f *files) doEdit(ctx context.Context, call *belay.Invocation, in *editInput) (belay.Result, error) {
	at, err := f.locate(in.Path)
	if err != nil {
		return belay.Result{}, err
	}
	switch in.OldString {
	case "":
		return belay.Result{}, failf(belay.ClassInvalid, "old_string is empty: say what to replace, or write the whole file with write.")
	case in.NewString:
		return belay.Result{}, failf(belay.ClassInvalid, "old_string and new_string are the same: there is nothing to change.")
	}
	f.change.Lock()
	defer f.change.Unlock()
	if ctx.Err() != nil {
		return belay.Result{}, context.Cause(ctx)
	}
	file, err := at.load()
	if err != nil {
		return belay.Result{}, f.explain(at, err)
	}
	if err := f.read.check(ctx, call, at, file.sum()); err != nil {
		return belay.Result{}, err
	}
	before := string(file.data)
	after, lines, err := replaceIn(at.shown, before, in)
	if err != nil {
		return belay.Result{}, err
	}
	undo := f.snapshots.begin(call, at, file, []byte(after))
	remark, err := at.replace(file, []byte(after))
	if err != nil {
		undo()
		return belay.Result{}, f.explain(at, err)
	}
	now := sum(sha256.Sum256([]byte(after)))
	f.read.saw(call.Session, at, now)
	view := changeView(at.shown, "edited", before, after)
	view.Seen = now.text()
	return answer(fmt.Sprintf("%s was edited: %s, at %s.%s", inText(at.shown), plural(len(lines), "replacement", "replacements"), atLines(lines), remark), view)
}

// replaceIn makes the replacements of an edit, and returns the lines of the replacements.
func replaceIn(name, text string, in *editInput) (after string, lines []int, err error) {
	old, fresh := in.OldString, in.NewString
	if endsInCRLF(text) {
		old, fresh = toCRLF(old), toCRLF(fresh)
	}
	lines = linesOf(text, old)
	switch {
	case len(lines) == 0:
		return "", nil, failf(belay.ClassInvalid, "old_string is not in %q, so nothing was changed.%s", name, nearest(text, in.OldString))
	case len(lines) > 1 && !in.ReplaceAll:
		return "", nil, failf(belay.ClassInvalid, "old_string occurs %d times in %q, at %s, so nothing was changed. Add surrounding lines to make it unique, or set replace_all.",
			len(lines), name, atLines(lines))
	}
	return strings.ReplaceAll(text, old, fresh), lines, nil
}

// endsInCRLF reports whether every line of a text ends in CRLF.
func endsInCRLF(text string) bool {
	n := strings.Count(text, "\r\n")
	return n > 0 && n == strings.Count(text, "\n")
}

func toCRLF(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// linesOf returns the line numbers, counted from 1, at which a part occurs in a text.
func linesOf(text, part string) []int {
	var lines []int
	line := 1
	for {
		i := strings.Index(text, part)
		if i < 0 {
			return lines
		}
		line += strings.Count(text[:i], "\n")
		lines = append(lines, line)
		line += strings.Count(part, "\n")
		text = text[i+len(part):]
	}
}

// maxNamedLines is how many line numbers a message lists.
const maxNamedLines = 20

// atLines returns line numbers as text, such as "line 3" or "lines 3, 7 and 12".
func atLines(lines []int) string {
	if len(lines) == 1 {
		return fmt.Sprintf("line %d", lines[0])
	}
	if over := len(lines) - maxNamedLines; over > 0 {
		return "lines " + joinInts(lines[:maxNamedLines]) + fmt.Sprintf(" and %d more", over)
	}
	last := len(lines) - 1
	return "lines " + joinInts(lines[:last]) + fmt.Sprintf(" and %d", lines[last])
}

func joinInts(numbers []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}
