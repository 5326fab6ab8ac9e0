package toolbox

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

const (
	// maxWhole is the maximum size of a file that is read completely. The tools change
	// only such files, and count the lines only of such files.
	maxWhole = 32 << 20
	// maxImage is the maximum size of an image that models accept.
	maxImage = 5 << 20
	// maxText is how many bytes of a file one call shows. It is below the default limit
	// for results, so that the result is not cut and the model can read on with another
	// call.
	maxText = 40_000
	// maxLine is how many bytes of a line are shown.
	maxLine = 2_000
	// sniffed is how many bytes of a file are read to detect its type.
	sniffed = 8_000
	// defaultLines is how many lines a call shows by default.
	defaultLines = 2_000
)

type readInput struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (f *files) readTool() belay.Tool { //nolint:ireturn // a tool is used through the interface
	return newTool("read", "Reads a file of the project. Each line starts with its number and a tab. Images are shown. "+
		"A long file is shown in parts: continue with offset.", `{
		"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
			"path": {"type": "string", "description": "the file, relative to the project"},
			"offset": {"type": "integer", "minimum": 1, "description": "the first line to show, counted from 1"},
			"limit": {"type": "integer", "minimum": 1, "description": "how many lines to show; default 2000"}
		}}`, lookOnly, f.doRead)
}

func (f *files) doRead(ctx context.Context, call *belay.Invocation, in *readInput) (belay.Result, error) {
	at, err := f.locate(in.Path)
	if err != nil {
		return belay.Result{}, err
	}
	file, info, err := at.open()
	if err != nil {
		return belay.Result{}, f.explain(at, err)
	}
	defer func() { _ = file.Close() }() // only read, so an error does not matter
	start := make([]byte, sniffed)
	n, err := io.ReadFull(file, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return belay.Result{}, f.explain(at, err)
	}
	start = start[:n]
	if isBinary(start) {
		result, content, err := showBinary(at, file, start, info)
		if err != nil {
			return belay.Result{}, f.explain(at, err)
		}
		f.read.saw(call.Session, at, content)
		return result, nil
	}
	show := &excerpt{from: max(in.Offset, 1), most: in.Limit}
	if show.most <= 0 {
		show.most = defaultLines
	}
	whole := info.Size() <= maxWhole
	content, err := show.take(ctx, io.MultiReader(bytes.NewReader(start), file), whole)
	if err != nil {
		return belay.Result{}, f.explain(at, err)
	}
	if whole {
		f.read.saw(call.Session, at, content)
	}
	return show.result(at, info, whole, content)
}

// isBinary reports whether a file is not text, by the first bytes of the file.
func isBinary(start []byte) bool { return bytes.IndexByte(start, 0) >= 0 }

// showBinary returns the result for a file that is not text.
func showBinary(at spot, file *os.File, start []byte, info fs.FileInfo) (belay.Result, sum, error) {
	mime := http.DetectContentType(start)
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
	default:
		if bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff")) {
			mime = "text in UTF-16"
		}
		return belay.Result{}, sum{}, failf(belay.ClassInvalid, "%q is a binary file (%s, %s): this tool shows text in UTF-8 and images.", at.shown, mime, size(info.Size()))
	}
	if info.Size() > maxImage {
		return belay.Result{}, sum{}, failf(belay.ClassInvalid, "%q is an image of %s: the maximum is %s.", at.shown, size(info.Size()), size(maxImage))
	}
	rest, err := io.ReadAll(io.LimitReader(file, maxImage))
	if err != nil {
		return belay.Result{}, sum{}, err
	}
	data := slices.Concat(start, rest)
	content := sum(sha256.Sum256(data))
	result, err := answer(fmt.Sprintf("%s is an image (%s, %s).", inText(at.shown), mime, size(info.Size())),
		ReadView{Kind: "read", Path: at.shown, MIME: mime, Seen: content.text()})
	result.Media = []belay.Media{{MIME: mime, Name: at.shown, Data: data}}
	return result, content, err
}

// excerpt is the part of a text that is shown.
type excerpt struct {
	from, most int

	text    strings.Builder
	line    int  // number of the current line, from 1; 0 before the first line
	to      int  // number of the last shown line
	lines   int  // number of all lines, if the text was read to its end
	crlf    bool // a shown line ended in CRLF
	unclear bool // a shown line is not valid UTF-8
	full    bool // there is no room for more lines
}

// take reads a text. If whole is set, take reads the whole text and returns a hash of it.
func (x *excerpt) take(ctx context.Context, from io.Reader, whole bool) (sum, error) {
	hash := sha256.New()
	if whole {
		from = io.TeeReader(io.LimitReader(from, 2*maxWhole), hash) // a limit, because the file may be growing
	}
	r := bufio.NewReaderSize(from, 64<<10)
	var line []byte // the part of the current line that can be shown
	long := false
	for begun := false; ; {
		part, err := r.ReadSlice('\n')
		if len(part) > 0 {
			if !begun {
				begun = true
				x.line++
			}
			if x.wants() {
				room := min(maxLine+utf8.UTFMax-len(line), len(part))
				line = append(line, part[:room]...)
				long = long || room < len(part)
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if ctx.Err() != nil {
				return sum{}, context.Cause(ctx)
			}
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return sum{}, fmt.Errorf("read: %w", err)
		}
		if begun {
			x.show(line, long)
		}
		line, long, begun = line[:0], false, false
		if err != nil {
			x.lines = x.line
			return sum(hash.Sum(nil)), nil //nolint:nilerr // it is the end of the file
		}
		if !whole && (x.full || x.line >= x.from+x.most-1) {
			return sum{}, nil
		}
		if x.line%1024 == 0 && ctx.Err() != nil {
			return sum{}, context.Cause(ctx)
		}
	}
}

// wants reports whether to show the current line.
func (x *excerpt) wants() bool {
	return !x.full && x.line >= x.from && x.line < x.from+x.most
}

// show adds the current line if it is wanted and fits.
func (x *excerpt) show(line []byte, long bool) {
	if !x.wants() {
		return
	}
	if text, ok := bytes.CutSuffix(line, []byte("\n")); ok {
		line = text
		if text, ok := bytes.CutSuffix(line, []byte("\r")); ok {
			line, x.crlf = text, true
		}
	}
	if x.line == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if long || len(line) > maxLine {
		line = cutEnd(line, maxLine)
		line = append(line, " [... the line continues]"...)
	}
	if !utf8.Valid(line) {
		line, x.unclear = bytes.ToValidUTF8(line, []byte("\ufffd")), true
	}
	if x.text.Len() > 0 && x.text.Len()+len(line) > maxText {
		x.full = true
		return
	}
	fmt.Fprintf(&x.text, "%6d\t%s\n", x.line, line)
	x.to = x.line
}

// cutEnd cuts a text to a maximum number of bytes, without splitting a character.
func cutEnd(p []byte, most int) []byte {
	if len(p) <= most {
		return p
	}
	for back := 0; back < utf8.UTFMax-1 && most > back; back++ {
		if utf8.RuneStart(p[most-back]) {
			return p[:most-back]
		}
	}
	return p[:most]
}

func (x *excerpt) result(at spot, info fs.FileInfo, whole bool, content sum) (belay.Result, error) {
	counted := whole || x.lines > 0
	var notes []string
	switch {
	case info.Size() == 0 && x.line == 0:
		notes = append(notes, "the file is empty")
	case x.to == 0 && counted:
		return belay.Result{}, failf(belay.ClassInvalid, "There is no line %d: %q has %s.", x.from, at.shown, plural(x.lines, "line", "lines"))
	case counted && (x.from > 1 || x.to < x.lines):
		note := fmt.Sprintf("lines %d-%d of %d", x.from, x.to, x.lines)
		if x.to < x.lines {
			note += fmt.Sprintf("; continue with offset %d", x.to+1)
		}
		notes = append(notes, note)
	case !counted:
		notes = append(notes, fmt.Sprintf("lines %d-%d of a file of %s; continue with offset %d, or search it with grep", x.from, x.to, size(info.Size()), x.to+1))
	}
	if x.crlf {
		notes = append(notes, "the lines end in CRLF, and edit keeps CRLF")
	}
	if x.unclear {
		notes = append(notes, "bytes that are not UTF-8 are shown as \ufffd")
	}
	text := x.text.String()
	if len(notes) > 0 {
		text += "[" + strings.Join(notes, "] [") + "]"
	}
	view := ReadView{Kind: "read", Path: at.shown, To: x.to, Lines: x.lines}
	if x.to > 0 {
		view.From = x.from
	}
	if whole {
		view.Seen = content.text()
	}
	return answer(text, view)
}
