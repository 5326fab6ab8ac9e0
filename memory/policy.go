package memory

import (
	"context"
	"regexp"
	"strings"

	"github.com/belay-run/belay"
)

// The turn policy of memory. Both keys hold only if everyone who sets them says so: a
// hook, in Go or in a file, that sets one to false has the last word, in whatever order
// hooks run. A turn without the keys, as when the classifier failed, has neither.
var (
	// PolicyRead lets memories into the turn: by recall, and by tools.
	PolicyRead = belay.PolicyAnd("memory.read")
	// PolicyWrite lets the turn be remembered: by extraction, and by tools.
	PolicyWrite = belay.PolicyAnd("memory.write")
)

// Access is what a turn may do with memories. Forgetting is part of both.
type Access struct{ Read, Write bool }

// accessOf is what the merged policy of a turn allows.
func accessOf(policy belay.PolicySettings) Access {
	read, _ := PolicyRead.Value(policy)
	write, _ := PolicyWrite.Value(policy)
	return Access{read, write}
}

// Classify reads from a user's text what may be done with memories: all of it, unless
// the text says otherwise. "Do not remember this" and "off the record" forbid writing,
// "without your memory" forbids reading. It understands English; [Options.Classify] is
// for more.
func Classify(text string) Access {
	text = strings.Join(strings.Fields(strings.ToLower(strings.ReplaceAll(text, "’", "'"))), " ")
	said, ok := passages(text)
	if !ok {
		return Access{} // it may say anything
	}
	return Access{Read: !forbids(noReading, said), Write: !forbids(noWriting, said)}
}

// The bounds of what is read of a long text: passages around words that matter.
const (
	longEnough   = 4_000 // bytes that are read as a whole
	mostPassages = 500
	before       = 80
	behind       = 120
)

// passages are the parts of a text that the phrases may be in, wherever they are. It
// reports false if there are too many to read.
func passages(text string) (string, bool) {
	if len(text) <= longEnough {
		return text, true
	}
	var b strings.Builder
	left := mostPassages
	for _, word := range telling {
		for from := 0; ; {
			at := strings.Index(text[from:], word)
			if at < 0 {
				break
			}
			if left--; left < 0 {
				return "", false
			}
			at += from
			from = at + len(word)
			b.WriteString(text[max(at-before, 0):min(from+behind, len(text))] + "\n\n")
		}
	}
	return b.String(), true
}

// telling are words of which each phrase has one. Looking for them is quick; phrases are
// looked for where they are.
var telling = func() []string {
	words := []string{"remember", "memor", "off the record", "the record", "forget ", "you know", "you recall"}
	for _, verb := range []string{"save", "store", "keep", "note", "record", "write down", "retain"} {
		for _, what := range []string{"this", "that", "it", "any", "what i"} {
			words = append(words, verb+" "+what)
		}
	}
	return words
}()

// forbids reports whether the text says one of the phrases, and not about somebody:
// "I don't remember that" forbids nothing.
func forbids(phrases []*regexp.Regexp, text string) bool {
	for _, phrase := range phrases {
		for _, found := range phrase.FindAllStringSubmatch(text, -1) {
			if found[1] == "" {
				return true
			}
		}
	}
	return false
}

var (
	noWriting = phrases(
		`(?:do not|don't|dont|never|without|stop|no) (?:ever )?(?:remember|remembering|memori[sz]e|memori[sz]ing)\b`,
		`(?:do not|don't|dont|never) (?:ever )?(?:save|store|keep|note|record|write down|retain) (?:this|that|it|any of (?:this|that)|anything|what i)\b`,
		`(?:do not|don't|dont|never) (?:add|save|store|put|keep|write) [^.!?]{0,60}\b(?:to|in|into) (?:your |the |my )?(?:memory|memories)\b`,
		`off the record\b`,
		`(?:keep|leave) [^.!?]{0,40}\b(?:out of|off) (?:your |the )?(?:memory|memories|record)\b`,
		`forget (?:that )?(?:i|we) (?:ever )?(?:just )?(?:said|told|mentioned|asked)\b`,
		`forget what (?:i|we) (?:just )?(?:said|told)\b`,
	)
	noReading = phrases(
		`(?:without|do not|don't|dont|never) (?:use |using |consult |consulting |look at |look in |looking at |check |checking |recall |recalling )?(?:your |any |the |my |from )*(?:memory|memories)\b`,
		`(?:ignore|disregard|forget about|leave aside) (?:your |any |all |the |my )*(?:memory|memories)\b`,
		`(?:ignore|disregard|do not use|don't use|dont use|without) (?:everything |anything |all )?(?:that |what )?you (?:know|remember|recall)\b`,
	)
)

// phrases compiles patterns so that the first group is a person who is spoken about.
func phrases(patterns ...string) []*regexp.Regexp {
	compiled := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		compiled[i] = regexp.MustCompile(`(?:^|[^a-z'])((?:i|we|they|he|she|you) (?:really |just |still )?)?(?:` + p + `)`)
	}
	return compiled
}

// classify sets the policy of a turn.
func (e *Extension) classify(ctx context.Context, in belay.TurnBegun) (belay.TurnPolicy, error) {
	access := Classify(in.Text())
	if e.opts.Classify != nil {
		more, err := e.opts.Classify(ctx, in)
		if err != nil {
			return belay.TurnPolicy{}, err // without a policy nothing is read or written
		}
		access.Read, access.Write = access.Read && more.Read, access.Write && more.Write
	}
	access.Write = access.Write && !e.opts.ReadOnly
	return belay.SetPolicy(PolicyRead.Set(access.Read), PolicyWrite.Set(access.Write)), nil
}
