package toolbox_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/toolbox"
)

func TestRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 3000)
	for _, test := range []struct {
		rule    string
		content string
		input   in
		want    string
	}{
		{"lines have numbers", "a\nb\n", nil, "     1\ta\n     2\tb\n"},
		{"the last line may have no end", "a\nb", nil, "     1\ta\n     2\tb\n"},
		{"an empty file says so", "", nil, "[the file is empty]"},
		{"an empty line is a line", "\n\n", nil, "     1\t\n     2\t\n"},
		{"a part says what it is part of", "a\nb\nc\nd\n", in{"offset": 2, "limit": 2}, "     2\tb\n     3\tc\n[lines 2-3 of 4; continue with offset 4]"},
		{"the last part has nothing to go on with", "a\nb\nc\n", in{"offset": 3}, "     3\tc\n[lines 3-3 of 3]"},
		{"line ends of two characters are told", "a\r\nb\r\n", nil, "     1\ta\n     2\tb\n[the lines end in CRLF, and edit keeps CRLF]"},
		{"a byte order mark is not shown", "\ufeffa\n", nil, "     1\ta\n"},
		{"what is not UTF-8 is told", "a\xff\xfeb\n", nil, "     1\ta\ufffdb\n[bytes that are not UTF-8 are shown as \ufffd]"},
		{"a long line is cut between characters", long + "\nb\n", nil, "     1\t" + long[:2000] + " [... the line continues]\n     2\tb\n"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			k := newKit(t, nil)
			k.put("f.txt", test.content)
			input := in{"path": "f.txt"}
			maps.Copy(input, test.input)
			if got := k.ok("read", input); got != test.want {
				t.Errorf("text = %q, want %q", got, test.want)
			}
		})
	}
}

func TestReadIsBoundedAndGoesOn(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	var all strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&all, "line %d %s\n", i+1, strings.Repeat("x", 100))
	}
	k.put("big.txt", all.String())
	seen := 0
	for offset := 1; offset <= 5000; {
		r := k.call("read", in{"path": "big.txt", "offset": offset})
		v := view[toolbox.ReadView](t, r)
		if len(r.Text) > 50_000 || v.From != offset || v.To < offset || v.Lines != 5000 || v.Kind != "read" {
			t.Fatalf("%d bytes, view = %+v", len(r.Text), v)
		}
		has(t, r.Text, fmt.Sprintf("%d\tline %d x", v.From, v.From), fmt.Sprintf("%d\tline %d x", v.To, v.To))
		seen += v.To - v.From + 1
		offset = v.To + 1
	}
	if seen != 5000 {
		t.Errorf("%d lines were shown, want 5000", seen)
	}
	k.fails(belay.ClassInvalid, "read", in{"path": "big.txt", "offset": 5001}, "no line 5001", "5000 lines")
}

func TestReadHugeFile(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	f, err := os.Create(filepath.Join(k.dir, "huge.log"))
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 99) + "\n"
	if _, err := f.WriteString(strings.Repeat(line, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(8 << 30); err != nil { // a sparse file, which takes no space on the disk
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r := k.call("read", in{"path": "huge.log", "limit": 10})
	has(t, r.Text, "lines 1-10 of a file of 8.0 GiB", "offset 11")
	k.fails(belay.ClassInvalid, "edit", in{"path": "huge.log", "old_string": "x", "new_string": "y"}, "larger than 32.0 MiB")
	k.fails(belay.ClassInvalid, "write", in{"path": "huge.log", "content": "y"}, "larger than 32.0 MiB")
}

func TestReadOneEndlessLine(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("min.js", strings.Repeat("x", 20<<20))
	if got := k.ok("read", in{"path": "min.js"}); len(got) > 3000 || !strings.Contains(got, "the line continues") {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
}

// pixel is a PNG image of one pixel, in Base64.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestReadWhatIsNotText(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	png, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		t.Fatal(err)
	}
	k.put("dot.png", string(png))
	k.put("big.png", string(png)+strings.Repeat("\x00", 6<<20))
	k.put("prog", "\x7fELF\x00\x01")
	k.put("wide.txt", "\xff\xfea\x00b\x00")
	r := k.call("read", in{"path": "dot.png"})
	if r.IsError || len(r.Media) != 1 || r.Media[0].MIME != "image/png" || !bytes.Equal(r.Media[0].Data, png) {
		t.Errorf("result = %+v, want the image", r)
	}
	if v := view[toolbox.ReadView](t, r); v.MIME != "image/png" {
		t.Errorf("view = %+v", v)
	}
	k.fails(belay.ClassInvalid, "read", in{"path": "big.png"}, "image of 6.0 MiB", "5.0 MiB")
	k.fails(belay.ClassInvalid, "read", in{"path": "prog"}, "binary file", "application/octet-stream", "6 bytes")
	k.fails(belay.ClassInvalid, "read", in{"path": "wide.txt"}, "UTF-16")
	k.fails(belay.ClassInvalid, "read", in{"path": "."}, "is a directory", "list")
}

func TestReadWhatIsNotThere(t *testing.T) {
	t.Parallel()
	k := newKit(t, nil)
	k.put("docs/Readme.md", "x")
	k.put("docs/other.txt", "x")
	k.fails(belay.ClassNotFound, "read", in{"path": "docs/README.txt"}, "does not exist", "did you mean docs/Readme.md?")
	k.fails(belay.ClassNotFound, "read", in{"path": "docs/zzz"}, `"docs/zzz" does not exist.`)
	k.fails(belay.ClassNotFound, "read", in{"path": "docs/other.txt/x"}, "does not exist")
	k.fails(belay.ClassInvalid, "read", in{"path": ""}, "empty")
	k.fails(belay.ClassInvalid, "read", in{"path": "a\x00b"}, "zero byte")
}
