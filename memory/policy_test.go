package memory_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay/memory"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text        string
		read, write bool
	}{
		{"", true, true},
		{"Hello.", true, true},
		{"Remember that I like tea.", true, true},
		{"I don't remember where I put the keys.", true, true},
		{"We do not remember this.", true, true},
		{"Do you remember my name?", true, true},
		{"The parser uses too much memory.", true, true},
		{"Don't forget that the memory is shared.", true, true},
		{"Please fix the off-by-one in the record.", true, true},
		{"Please do not remember this.", true, false},
		{"Don’t   remember\nthis, please.", true, false},
		{"DON'T MEMORIZE IT", true, false},
		{"don't save this: my number is 5", true, false},
		{"Off the record: the boss is leaving.", true, false},
		{"Keep this out of your memory.", true, false},
		{"Forget what I just said.", true, false},
		{"Never store that I was here in your memory.", true, false},
		{"Answer without using your memory.", false, true},
		{"Ignore your memories and start afresh.", false, true},
		{"Ignore everything you know about me.", false, true},
		{"Do not use your memory, and don't remember this.", false, false},
		{strings.Repeat("some log line\n", 80_000) + "Don't remember any of it.", true, false},
		{"Off the record. " + strings.Repeat("some log line\n", 80_000), true, false},
		{strings.Repeat("some log line\n", 80_000), true, true},
		{strings.Repeat("I remember it. ", 10_000), false, false}, // too much to be read: nothing is allowed
	} {
		if got := memory.Classify(test.text); got != (memory.Access{Read: test.read, Write: test.write}) {
			t.Errorf("Classify(%.60q…) = %+v, want read %t, write %t", test.text, got, test.read, test.write)
		}
	}
}
