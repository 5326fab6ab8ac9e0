package chat

import (
	"strings"
	"unicode/utf8"
)

// The open block of a text is rendered again with each delta, so it must not
// grow without limit: longer blocks are cut.
const (
	openBytes = 4 << 10
	openLines = 60 // of code
	keepLines = 20 // of code, that stay open
)

// block is a part of a markdown text that will not change any more.
type block struct {
	text string
	// glued means that the block continues the one before, which was cut.
	glued bool
}

// stream cuts a markdown text, as it comes, into blocks that can be rendered by
// themselves. Its zero value is an empty text.
type stream struct {
	raw   string // the open block
	glued bool
}

// add takes a delta and returns the blocks that it finishes.
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

// open is the block that is not finished.
func (s *stream) open() string { return whole(s.raw) }

// flush ends the text.
func (s *stream) flush() []block {
	last := block{s.raw, s.glued}
	*s = stream{}
	if strings.TrimSpace(last.text) == "" {
		return nil
	}
	return []block{last}
}

// cut removes and returns the first finished block.
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

// cutCode removes and returns the beginning of long code, and closes and reopens
// its fence.
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

// boundary returns the end of the first block, or 0 if it is not finished. Then
// fence is the fence mark, if the block is code.
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

// verdict is the effect of a line on the current block.
type verdict int

const (
	goesOn verdict = iota
	endsBefore
	endsAfter
)

// scan is the state of reading a block's lines.
type scan struct {
	started bool
	list    bool   // it begins with an item
	code    bool   // it begins with a fence
	gap     bool   // the last line was blank
	fence   string // the mark of the code that the next line is in
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
		return endsBefore // it interrupts a paragraph
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

// indents reports whether a line belongs to the item above it.
func indents(line string) bool { return line[0] == ' ' || line[0] == '\t' }

// itemish reports whether a line is, or may become, an item of a list.
func itemish(line string) bool {
	bare := strings.TrimLeft(line, " \t")
	return bare != "" && strings.IndexByte("-*+0123456789", bare[0]) >= 0
}

// heading reports whether a line is a heading.
func heading(line string) bool {
	level := len(line) - len(strings.TrimLeft(line, "#"))
	return level > 0 && level <= 6 && (len(line) == level || line[level] == ' ')
}

// fenceOf returns the mark that opens code in a line, or "".
func fenceOf(bare string) string {
	for _, c := range []string{"`", "~"} {
		n := len(bare) - len(strings.TrimLeft(bare, c))
		if n >= 3 && !(c == "`" && strings.Contains(bare[n:], c)) {
			return bare[:n]
		}
	}
	return ""
}

// closes reports whether a line closes the code that a mark opened.
func closes(bare, fence string) bool {
	return len(bare) >= len(fence) && strings.Trim(bare, fence[:1]) == ""
}
