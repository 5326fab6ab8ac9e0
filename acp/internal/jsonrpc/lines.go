package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines reads lines of a bounded length.
type lines struct {
	from *bufio.Reader
	most int
}

// headLength is how much of a line that is too long is kept, to find its id.
const headLength = 4 << 10

// errLong is the error of a line that is too long. The whole line was read.
var errLong = errors.New("the line is too long")

// next returns the next line that is not empty. With errLong it returns the beginning of the
// line.
func (l *lines) next() ([]byte, error) {
	var line []byte
	long := false
	for {
		piece, err := l.from.ReadSlice('\n')
		if !long {
			line = append(line, piece...)
			if long = len(line) > l.most; long {
				line = bytes.Clone(line[:min(len(line), headLength)])
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err //nolint:wrapcheck // the caller says what was read
		}
		if long {
			return line, errLong
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil // the end of the input comes with the next call
		}
		if err != nil {
			return nil, io.EOF
		}
	}
}
