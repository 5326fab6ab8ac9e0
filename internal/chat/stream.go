package chat

import (
	"strings"
	"unicode/utf8"
)

// The last block of a text is rendered again with each delta. These constants limit its
// size: a longer block is cut.
const (
	openBytes = 4 << 10
	openLines = 60 // lines of code in one block
	keepLines = 20 // lines of code that stay in the block after a cut
)

// block is a finished part of a markdown text.
type block struct {
	text string
	// glued means that the block continues a block that was cut.
	glued bool
}

// stream cuts a streamed markdown text into blocks. Each block can be rendered alone. The
// zero value is an empty text.
type stream struct {
	raw   string // the unfinished block
	glued bool
}

// add adds a delta and returns the blocks that are now finished.
func (s *stream) add(delta string) []block {
	s.raw += delta
	var done []block
	for {
		b, rest, ok := s.cut()
		if !ok {
			return done
		}
		if strings.TrimSpace(b) != "" {
			done = append(done, block{b, s.glued})
		}
		s.glued = rest.glued
		s.raw = rest.text
	}
}

// open returns the unfinished block.
func (s *stream) open() string { return whole(s.raw) }

// flush ends the text and returns the last block.
func (s *stream) flush() []block {
	last := block{s.raw, s.glued}
	*s = stream{}
	if strings.TrimSpace(last.text) == "" {
		return nil
	}
	return []block{last}
}

// cut splits off the first finished block, or a part of an unfinished block that is too
// long. It returns what it has split off and the rest, and reports whether there was
// something to split off.
func (s *stream) cut() (string, block, bool) {
	end, fence := boundary(s.raw)
	if end > 0 {
		return s.raw[:end], block{text: s.raw[end:]}, true
	}
	if fence != "" {
		return cutCode(s.raw, fence)
	}
	if len(s.raw) <= openBytes {
		return "", block{}, false
	}
	at := strings.LastIndexByte(s.raw[:openBytes], '\n') + 1
	if at == 0 {
		at = strings.LastIndexByte(s.raw[:openBytes], ' ') + 1
	}
	if at == 0 {
		for at = openBytes; at > openBytes-utf8.UTFMax && !utf8.RuneStart(s.raw[at]); {
			at--
		}
	}
	return s.raw[:at], block{s.raw[at:], true}, true
}

// cutCode splits off the beginning of a long code block. It closes the fence there, and
// opens it again in the rest.
func cutCode(raw, fence string) (string, block, bool) {
	lines := strings.SplitAfter(raw, "\n")
	keep := keepLines
	if len(lines) <= openLines {
		if len(raw) <= openBytes || len(lines) < 3 {
			return "", block{}, false
		}
		keep = 1
	}
	first := strings.Join(lines[:len(lines)-keep], "")
	mark := strings.Repeat(fence[:1], len(fence))
	return first + mark + "\n", block{lines[0] + strings.Join(lines[len(lines)-keep:], ""), true}, true
}

// boundary returns the end of the first block, or 0 if that block is unfinished. fence is
// the fence of an unfinished code block.
func boundary(raw string) (end int, fence string) {
	var s scan
	for start := 0; start < len(raw); {
		line, complete := raw[start:], false
		if at := strings.IndexByte(line, '\n'); at >= 0 {
			line, complete = line[:at], true
		}
		next := start + len(line) + 1
		switch s.read(line, complete) {
		case endsBefore:
			return start, ""
		case endsAfter:
			return next, ""
		case goesOn:
		}
		start = next
	}
	if s.code {
		return 0, s.fence
	}
	return 0, ""
}

// verdict says whether a line ends the current block.
type verdict int

const (
	goesOn verdict = iota
	endsBefore
	endsAfter
)

// scan is the state while the lines of a block are read.
type scan struct {
	started bool
	list    bool   // the block begins with a list item
	code    bool   // the block begins with a fence
	gap     bool   // the last line was blank
	fence   string // the fence that is open, or ""
}

// read reads the next line, which may be incomplete.
func (s *scan) read(line string, complete bool) verdict {
	bare := strings.TrimSpace(line)
	switch {
	case s.fence != "":
		if complete && closes(bare, s.fence) {
			if s.fence = ""; s.code {
				return endsAfter
			}
		}
		return goesOn
	case bare == "":
		s.gap = s.gap || s.started && complete
		return goesOn
	case s.started && s.gap && !indents(line) && !(s.list && itemish(line)):
		return endsBefore
	}
	mark := fenceOf(bare)
	if s.started && !s.list && !indents(line) && complete && (mark != "" || heading(line)) {
		return endsBefore // a fence or a heading ends the paragraph before it
	}
	if !s.started {
		s.list, s.code = itemish(line), mark != "" && !indents(line)
		if complete && heading(line) {
			return endsAfter
		}
	}
	s.started, s.gap, s.fence = true, false, mark
	return goesOn
}

// indents reports whether a line is indented, so that it belongs to the list item above.
func indents(line string) bool { return line[0] == ' ' || line[0] == '\t' }

// itemish reports whether a line is a list item, or may become one when more text arrives.
func itemish(line string) bool {
	bare := strings.TrimLeft(line, " \t")
	return bare != "" && strings.IndexByte("-*+0123456789", bare[0]) >= 0
}

func heading(line string) bool {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	return level > 0 && level <= 6 && (len(line) == level || line[level] == ' ')
}

// fenceOf returns the fence that opens a code block in this line, or "".
func fenceOf(bare string) string {
	for _, c := range []string{"`", "~"} {
		n := len(bare) - len(strings.TrimLeft(bare, c))
		if n >= 3 && !(c == "`" && strings.Contains(bare[n:], c)) {
			return bare[:n]
		}
	}
	return ""
}

// closes reports whether a line closes the code block that fence opened.
func closes(bare, fence string) bool {
	return len(bare) >= len(fence) && strings.Trim(bare, fence[:1]) == ""
}
