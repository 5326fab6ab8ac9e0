package toolbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// searchBlock is how many bytes of a file are searched at a time. A longer line
	// counts as several lines.
	searchBlock = 256 << 10
	// maxHitLine is how many bytes of a line are shown.
	maxHitLine = 400
)

// search searches the lines of files for a regular expression. It is safe for
// concurrent use.
type search struct {
	re       *regexp.Regexp
	needles  []needle // a line without any of them cannot match
	around   int      // how many lines to show before and after a match
	noLines  bool     // only count the matches
	maxLines int      // maximum number of matching lines per file
}

// newSearch compiles an expression. The expression is matched against lines without their
// line ends.
func newSearch(pattern string, literal, ignoreCase bool) (*search, error) {
	if literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	if ignoreCase {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err //nolint:wrapcheck // the message quotes the expression, and the caller says the rest
	}
	return &search{re: re, needles: needlesOf(pattern)}, nil
}

// hit is a line to show.
type hit struct {
	line    int
	text    string
	matched bool
}

// found is the result of searching a file.
type found struct {
	count int // number of matching lines
	hits  []hit
}

// block is the part of a file that is in memory. Before pos are lines that were searched
// and may still be shown as context. From pos to end are lines to search. After end is
// the beginning of a line that is not yet complete.
type block struct {
	data []byte
	pos  int // position of the first line to search
	end  int // position after the last line to search
	line int // line number at pos
}

// in searches a file. A binary file has no matches.
func (s *search) in(ctx context.Context, from io.Reader, buf []byte) (*found, error) {
	b := &block{data: buf[:0], line: 1}
	f := &found{}
	hay := newHaystack(s.needles)
	pending := 0 // how many context lines to show after the last match
	for first := true; ; first = false {
		last, err := b.fill(from)
		hay.forget()
		if err != nil {
			return nil, err
		}
		if first && isBinary(b.data[:min(len(b.data), sniffed)]) {
			return f, nil
		}
		for b.pos < b.end {
			start, end, ok := s.next(b, hay)
			pending = f.follow(b, start, pending)
			if !ok {
				break
			}
			f.add(s, b, start, end)
			if f.count >= s.maxLines {
				return f, nil
			}
			b.step(end, b.end)
			pending = s.around
		}
		if last {
			return f, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		b.shift(s.around)
	}
}

// fill reads until there are lines to search. last reports whether they are the last
// lines.
func (b *block) fill(from io.Reader) (last bool, err error) {
	for {
		for len(b.data) < cap(b.data) {
			n, err := from.Read(b.data[len(b.data):cap(b.data)])
			b.data = b.data[:len(b.data)+n]
			if errors.Is(err, io.EOF) {
				b.end = len(b.data)
				return true, nil
			}
			if err != nil {
				return false, fmt.Errorf("read: %w", err)
			}
		}
		i := bytes.LastIndexByte(b.data[b.pos:], '\n')
		switch {
		case i >= 0:
			b.end = b.pos + i + 1
			return false, nil
		case b.pos == 0:
			b.end = len(b.data)
			return false, nil
		}
		b.data = append(b.data[:0], b.data[b.pos:]...) // a long line needs the whole buffer
		b.pos = 0
	}
}

// shift drops searched lines to make room. It keeps some of them as context for the next
// match.
func (b *block) shift(keep int) {
	start := b.end
	for ; keep > 0 && start > 0 && b.end-start < cap(b.data)/2; keep-- {
		start = bytes.LastIndexByte(b.data[:start-1], '\n') + 1
	}
	if b.end-start >= cap(b.data)/2 {
		start = b.end
	}
	b.pos = b.end - start
	b.data = append(b.data[:0], b.data[start:]...)
}

// step moves to the next line. end is the position of the line's end. If end equals most,
// the line continues in the next block.
func (b *block) step(end, most int) {
	b.pos = most
	if end < most {
		b.line++
		b.pos = end + 1
	}
}

// next finds the next matching line and returns its position without the line end. If
// there is none, start is the end of the block. It does not count lines, see follow.
func (s *search) next(b *block, hay *haystack) (start, end int, ok bool) {
	for start = b.pos; start < b.end; start = end + 1 {
		if len(s.needles) > 0 {
			i := hay.from(b.data[:b.end], start)
			if i < 0 {
				break
			}
			start += bytes.LastIndexByte(b.data[start:i], '\n') + 1
		}
		end = b.end
		if i := bytes.IndexByte(b.data[start:b.end], '\n'); i >= 0 {
			end = start + i
		}
		if s.re.Match(bytes.TrimSuffix(b.data[start:end], []byte("\r"))) {
			return start, end, true
		}
	}
	return b.end, b.end, false
}

// follow moves to a position. On the way, it counts lines and adds pending context lines.
// It returns how many are still pending.
func (f *found) follow(b *block, to, pending int) int {
	for b.pos < to {
		end := to
		if pending == 0 {
			b.line += bytes.Count(b.data[b.pos:to], []byte("\n"))
			b.pos = to
			break
		}
		if i := bytes.IndexByte(b.data[b.pos:to], '\n'); i >= 0 {
			end = b.pos + i
		}
		f.hits = append(f.hits, hit{b.line, shorten(b.data[b.pos:end], 0), false})
		pending--
		b.step(end, to)
	}
	return pending
}

// add records a match at the current position, and the context lines before it.
func (f *found) add(s *search, b *block, start, end int) {
	f.count++
	if s.noLines {
		return
	}
	shown := 0 // number of the last recorded line
	if n := len(f.hits); n > 0 {
		shown = f.hits[n-1].line
	}
	from, line := start, b.line
	for range s.around {
		if from == 0 || line-1 <= shown {
			break
		}
		from = bytes.LastIndexByte(b.data[:from-1], '\n') + 1
		line--
	}
	for ; from < start; line++ {
		stop := from + bytes.IndexByte(b.data[from:start], '\n')
		f.hits = append(f.hits, hit{line, shorten(b.data[from:stop], 0), false})
		from = stop + 1
	}
	text := b.data[start:end]
	at := 0
	if len(text) > maxHitLine {
		if loc := s.re.FindIndex(text); loc != nil {
			at = loc[0]
		}
	}
	f.hits = append(f.hits, hit{b.line, shorten(text, at), true})
}

// shorten cuts a long line to the part around a position.
func shorten(line []byte, at int) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) > maxHitLine {
		from := max(min(at-maxHitLine/4, len(line)-maxHitLine), 0)
		for from > 0 && from < len(line) && !utf8.RuneStart(line[from]) {
			from++
		}
		cut := cutEnd(line[from:], maxHitLine)
		text := string(cut)
		if from > 0 {
			text = "[...] " + text
		}
		if from+len(cut) < len(line) {
			text += " [...]"
		}
		return strings.ToValidUTF8(text, "\ufffd")
	}
	return strings.ToValidUTF8(string(line), "\ufffd")
}
