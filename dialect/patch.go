package dialect

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// The lines that structure a patch of Codex. Codex reads them with the white space around
// them removed.
const (
	patchBegin  = "*** Begin Patch"
	patchEnd    = "*** End Patch"
	patchAdd    = "*** Add File: "
	patchDelete = "*** Delete File: "
	patchUpdate = "*** Update File: "
	patchMove   = "*** Move to: "
	patchEOF    = "*** End of File"
)

// errNoPatch says that a text has no patch.
var errNoPatch = fmt.Errorf("its patch does not begin with %q", patchBegin)

// patchInCommand returns the calls of a patch in a shell command. Codex applies such a patch
// itself.
func patchInCommand(command string) ([]Call, error) {
	i := strings.Index(command, patchBegin)
	if i < 0 {
		return nil, nil
	}
	calls, err := patchCalls(command[i:])
	if errors.Is(err, errNoPatch) {
		return nil, nil // the words are not a patch, and only the command counts
	}
	if err == nil && strings.Contains(command[:i], "cd ") {
		return nil, errors.New("its patch is applied in another directory, which cannot be checked: apply it without cd")
	}
	return calls, err
}

// patchCalls returns the calls that do what a patch does: a write for each new file, an
// edit for each part of a changed file, and an edit for a deleted or moved file. Every file
// that the patch names is in a call.
func patchCalls(patch string) ([]Call, error) {
	p := &patchReader{}
	begun := false
	for line := range strings.Lines(patch) {
		line = strings.TrimRight(line, "\r\n")
		head := strings.TrimSpace(line)
		switch {
		case p.updating && line != strings.TrimLeftFunc(line, unicode.IsSpace):
			// Codex reads a line with a space before it as text of the file. Other readers may
			// read it as the name of a file, so both count.
			p.named(head)
			p.body(line)
		case head == patchBegin:
			begun = true
		case strings.HasPrefix(head, patchEnd):
			p.begin("") // what follows may name files, too
		case !begun:
		case p.header(head):
		default:
			p.body(line)
		}
	}
	if !begun {
		return nil, errNoPatch
	}
	return p.finish() // a patch that was cut still names its files
}

// patchReader reads the lines of a patch.
type patchReader struct {
	calls         []Call
	err           error
	path          string
	adding        bool
	updating      bool // the current file is changed, not added or deleted
	before, after []string
	changed       bool // the current file has a call
}

// header reads a line that begins a file or a part. It returns false for other lines.
func (p *patchReader) header(head string) bool {
	switch {
	case strings.HasPrefix(head, patchAdd):
		p.begin(strings.TrimPrefix(head, patchAdd))
		p.adding = true
	case strings.HasPrefix(head, patchUpdate):
		p.begin(strings.TrimPrefix(head, patchUpdate))
		p.updating = true
	case strings.HasPrefix(head, patchDelete):
		p.begin(strings.TrimPrefix(head, patchDelete))
		p.edit()
	case strings.HasPrefix(head, patchMove):
		p.part()
		from := p.path
		p.path = strings.TrimSpace(strings.TrimPrefix(head, patchMove))
		p.edit() // the new name
		p.path = from
	case strings.HasPrefix(head, "@@"):
		p.part()
	case head == patchEOF:
	default:
		return false
	}
	return true
}

// named adds a call for a file that a line may name, and stays in the current file.
func (p *patchReader) named(head string) {
	for _, prefix := range []string{patchAdd, patchUpdate, patchDelete, patchMove} {
		path, ok := strings.CutPrefix(head, prefix)
		if !ok {
			continue
		}
		path = strings.TrimSpace(path)
		out := fields{}
		out.put("path", &path)
		out.put("old_string", new(""))
		out.put("new_string", new(""))
		p.add(toolEdit, out)
	}
}

func (p *patchReader) begin(path string) {
	p.endFile()
	p.path, p.adding, p.updating, p.changed = strings.TrimSpace(path), false, false, false
}

func (p *patchReader) body(line string) {
	if p.path == "" || line == "" && p.adding {
		return
	}
	switch {
	case strings.HasPrefix(line, "+"):
		p.after = append(p.after, line[1:])
	case strings.HasPrefix(line, "-"):
		p.before = append(p.before, line[1:])
	default:
		text := strings.TrimPrefix(line, " ")
		p.before, p.after = append(p.before, text), append(p.after, text)
	}
}

// part ends a part of a changed file.
func (p *patchReader) part() {
	if len(p.before)+len(p.after) > 0 {
		p.edit()
	}
}

func (p *patchReader) endFile() {
	switch {
	case p.path == "":
	case p.adding:
		out := fields{}
		content := strings.Join(p.after, "\n")
		if len(p.after) > 0 {
			content += "\n"
		}
		out.put("path", &p.path)
		out.put("content", &content)
		p.add(toolWrite, out)
	case len(p.before)+len(p.after) > 0 || !p.changed:
		p.edit()
	}
	p.before, p.after = nil, nil
}

func (p *patchReader) edit() {
	out := fields{}
	out.put("path", &p.path)
	out.put("old_string", new(strings.Join(p.before, "\n")))
	out.put("new_string", new(strings.Join(p.after, "\n")))
	p.before, p.after = nil, nil
	p.changed = true
	p.add(toolEdit, out)
}

func (p *patchReader) add(tool string, in fields) {
	calls, err := one(tool, in, "path")
	p.calls, p.err = append(p.calls, calls...), errors.Join(p.err, err)
}

func (p *patchReader) finish() ([]Call, error) {
	p.endFile()
	switch {
	case p.err != nil:
		return nil, p.err
	case len(p.calls) == 0:
		return nil, errors.New("its patch names no file")
	default:
		return p.calls, nil
	}
}

// patchOf returns a patch for Codex that does what a call of write or edit does.
func patchOf(tool string, in fields) string {
	var b strings.Builder
	path := ""
	if p := in.text("path"); p != nil {
		path = *p
	}
	lines := func(prefix, key string) {
		if text := in.text(key); text != nil && *text != "" {
			for line := range strings.SplitSeq(strings.TrimSuffix(*text, "\n"), "\n") {
				b.WriteString(prefix + line + "\n")
			}
		}
	}
	b.WriteString(patchBegin + "\n")
	if tool == toolWrite {
		b.WriteString(patchAdd + path + "\n")
		lines("+", "content")
	} else {
		b.WriteString(patchUpdate + path + "\n@@\n")
		lines("-", "old_string")
		lines("+", "new_string")
	}
	b.WriteString(patchEnd)
	return b.String()
}
