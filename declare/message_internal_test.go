package declare

import (
	"bytes"
	"testing"
)

// FuzzPlainMessage compares the two ways to read a line of a worker: the fast one reads no
// line that the other one refuses or reads differently.
func FuzzPlainMessage(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"decision":"deny"}}`,
		`{"jsonrpc":"2.0","id":1,"result": null }`,
		`{"jsonrpc":"2.0","id":01,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"message":"no"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{},"id":2}`,
		`{"jsonrpc":"2.0","id":18446744073709551616,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":}`,
		`{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}`,
		`{"jsonrpc":"2.0","id":"1","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(line)
		plain, ok := plainMessage(line)
		if !ok {
			return
		}
		var m message
		if !m.read(line) || m.failed || m.id != plain.id || !bytes.Equal(m.result, plain.result) {
			t.Errorf("the line %q is read as %d %s, want %d %s", line, plain.id, plain.result, m.id, m.result)
		}
	})
}

// A response in the usual form is read without encoding/json, except for the check of its
// result.
func TestPlainMessage(t *testing.T) {
	t.Parallel()
	m, ok := plainMessage([]byte(`{"jsonrpc":"2.0","id":7,"result":{"decision":"deny"}}`))
	if !ok || m.id != 7 || string(m.result) != `{"decision":"deny"}` {
		t.Errorf("it is read as %d %s, %t", m.id, m.result, ok)
	}
}
