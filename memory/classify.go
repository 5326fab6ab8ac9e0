package memory

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Classify returns what a turn may do with memories, according to the user's text.
// Everything is allowed unless the text forbids it. "Do not remember this" and "off the
// record" forbid writing. "Without your memory" forbids reading.
//
// A negation forbids access if a word for keeping or for memory follows within a few words.
// If Classify is not sure, it forbids access. Two kinds of negation forbid nothing: users
// can talk about themselves ("I don't remember"), or ask to remember ("don't forget").
// Classify understands only English. For other languages, set [Options.Classify].
func Classify(text string) Access {
	access := Access{Read: true, Write: true}
	text = unadorned(text)
	for text != "" && (access.Read || access.Write) {
		var s sentence
		s, text = nextSentence(text)
		s.judge(&access)
	}
	return access
}

// word is a word of a sentence, in lower case.
type word struct {
	text  string
	pause bool // a comma, a colon, a dash or a bracket follows
}

type sentence []word

// unadorned returns a text in lower case. It unifies apostrophes and hyphens, and removes
// invisible characters.
func unadorned(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf && r != '`':
			return unicode.ToLower(r)
		case strings.ContainsRune("’‘ʼ＇´`", r):
			return '\''
		case strings.ContainsRune("‐‑", r):
			return '-'
		case unicode.Is(unicode.Cf, r):
			return -1
		default:
			return unicode.ToLower(r)
		}
	}, text)
}

// nextSentence returns the words of the first sentence, and the rest of the text.
func nextSentence(text string) (s sentence, rest string) {
	from := 0 // start of the current word
	for i, r := range text {
		if r >= 'a' && r <= 'z' || r == '\'' || r == '-' || r == '_' || r != ' ' && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)) {
			continue
		}
		s = s.with(text[from:i])
		from = i + utf8.RuneLen(r)
		switch {
		case len(s) == 0 || r == ' ':
		case strings.ContainsRune(",:(–—", r):
			s[len(s)-1].pause = true
		case s.ends(r, text[from:]):
			return s, text[from:]
		}
	}
	return s.with(text[from:]), ""
}

func (s sentence) with(w string) sentence {
	if w = strings.Trim(w, "'-_"); w != "" {
		s = append(s, word{text: w})
	}
	return s
}

// ends reports whether a character ends the sentence. In "Do not… remember" and "e.g. this"
// the sentence continues.
func (s sentence) ends(r rune, rest string) bool {
	next, _ := utf8.DecodeRuneInString(rest)
	last := s[len(s)-1].text
	switch r {
	case '.', '!', '?', ';':
		if rest != "" && !unicode.IsSpace(next) && !strings.ContainsRune(`"”)`, next) || r == '.' && utf8.RuneCountInString(last) == 1 {
			return false
		}
	case '\n':
		if !strings.HasPrefix(strings.TrimLeft(rest, " \t\r"), "\n") { // an empty line ends a sentence, a line break does not
			return false
		}
	default:
		return false
	}
	return last == "no" || !isNegation(last)
}

// A negation can affect this many words after it: normally farthest, and near after words
// such as "without" and "stop".
const (
	farthest = 14
	near     = 5
)

// judge removes from access what the sentence forbids.
func (s sentence) judge(access *Access) {
	for i := range s {
		if !isNegation(s[i].text) && !beginning[s[i].text] {
			continue
		}
		s.judgePhrases(i, access)
		switch {
		case isNegation(s[i].text) && !s.harmless(i):
			s.judgeReach(i, farthest, access)
		case halting[s[i].text], s[i].text == "off" && i > 0 && switching[s[i-1].text]:
			s.judgeReach(i, near, access)
		}
	}
}

// judgeReach removes from access what the negation at i forbids. It looks at the next reach
// words.
func (s sentence) judgeReach(i, reach int, access *Access) {
	halts := !isNegation(s[i].text) // "stop saving" forbids, "stop and save" does not
	for j := i + 1; j < len(s) && j <= i+reach; j++ {
		if !telling[s[j].text] {
			continue
		}
		switch w := s[j].text; {
		case w == "but" || w == "because":
			return
		case j <= i+4 && undoing[w], j == i+1 && w == "mind":
			return // "don't forget" asks to remember
		case w == "memory" || w == "memories":
			if s.computing(j) {
				continue
			}
			if s.ofSpeaker(i, j) {
				return
			}
			s.judgeMemory(i, j, access)
		case s.keeps(j) && (!halts || strings.HasSuffix(w, "ing") || strings.HasPrefix(w, "record")):
			if s.ofSpeaker(i, j) {
				return
			}
			access.Write = false
		case s.looksBack(i, j):
			if s.ofSpeaker(i, j) {
				return
			}
			access.Read = false
		}
	}
}

// judgeMemory removes access because of the negation at i and the word "memory" at j.
func (s sentence) judgeMemory(i, j int, access *Access) {
	switch between := s[i+1 : j]; {
	case between.any(puts):
		access.Write = false
	case between.any(looks), s[i].text == "without":
		access.Read = false
	default:
		*access = Access{}
	}
}

// judgePhrases removes access because of phrases at i that forbid without a negation.
func (s sentence) judgePhrases(i int, access *Access) {
	switch w := s[i].text; {
	case w == "off-the-record", s.says(i, "off", "the", "record"),
		s.says(i, "between", "us"), s.says(i, "between", "ourselves"), s.says(i, "between", "you", "and", "me"),
		s.says(i, "in", "confidence"), w == "confidential" && s.upTo(i, near).any(being),
		s.keeps(i) && i+1 < len(s) && none[s[i+1].text] && !s.firstPerson(i),
		w == "forget" && i+1 < len(s) && forgettable[s[i+1].text] && !s.firstPerson(i) && !slices.ContainsFunc(s.upTo(i, 3), func(w word) bool { return isNegation(w.text) }):
		access.Write = false
	case leaving[w]:
		for j := i + 1; j < len(s) && j <= i+farthest; j++ {
			if s.says(j, "to", "yourself") || kept[s[j].text] && (s.upTo(j, 2).says(0, "out", "of") || s.upTo(j, 3).says(0, "out", "of") || s.upTo(j, 2).any(from)) {
				access.Write = false
			}
		}
	}
	if ignoring[s[i].text] || s.says(i, "leave", "aside") || s.says(i, "forget", "about") {
		for j := i + 1; j < len(s) && j <= i+near; j++ {
			if (s[j].text == "memory" || s[j].text == "memories") && !s.computing(j) || s.earlier(j) || s.known(j) || noteWords[s[j].text] {
				access.Read = false
			}
		}
	}
}

// keeps reports whether the word at j means to keep something.
func (s sentence) keeps(j int) bool {
	w, next := s[j].text, ""
	if j+1 < len(s) {
		next = s[j+1].text
	}
	switch {
	case w == "keep" && strings.HasSuffix(next, "ing") && !strings.HasSuffix(next, "thing"): // "keep going"
		return false
	case keeping[w]:
		return true
	case noted[w]:
		return next != "in" && next != "out" // "logged in" does not mean to keep something
	case noting[w]:
		return s[j+1 : min(j+3, len(s))].any(things)
	case jotting[w]:
		return s[j+1 : min(j+5, len(s))].any(down)
	case noteWords[w]:
		return s.upTo(j, 3).any(taking)
	case holding[w]:
		return s.says(j+1, "on", "to")
	default:
		return false
	}
}

// looksBack reports whether the words at j mean to look at earlier conversations.
func (s sentence) looksBack(i, j int) bool {
	switch w := s[j].text; {
	case recalling[w], s.earlier(j):
		return true
	case s.known(j), noteWords[w]:
		return s[i].text == "without" || s[i+1:j].any(looks) || s[i+1:j].any(uses)
	default:
		return false
	}
}

// earlier reports whether the words at j mean an earlier conversation.
func (s sentence) earlier(j int) bool {
	return before[s[j].text] && j+1 < len(s) && talks[s[j+1].text]
}

// known reports whether the words at j mean what the model knows.
func (s sentence) known(j int) bool {
	return s[j].text == "you" && j+1 < len(s) && knowing[s[j+1].text]
}

// computing reports whether the word "memory" at j means the memory of a computer.
func (s sentence) computing(j int) bool {
	return j+1 < len(s) && !s[j].pause && machine[s[j+1].text] || j > 0 && ofMachine[s[j-1].text] ||
		j > 2 && running[s[j-3].text] && s.says(j-2, "out", "of")
}

// harmless reports whether the negation at i forbids nothing.
func (s sentence) harmless(i int) bool {
	next, prev := "", ""
	if i+1 < len(s) {
		next = s[i+1].text
	}
	if i > 0 {
		prev = s[i-1].text
	}
	switch s[i].text {
	case "no":
		return s[i].pause || politely[next]
	case "not":
		return next == "only" || prev == "why" || prev == "or" || prev == "if" && s[i].pause
	default:
		return false
	}
}

// ofSpeaker reports whether the negation at i and the word at j are about the speaker. "I
// don't remember" is, "I don't want you to remember" is not.
func (s sentence) ofSpeaker(i, j int) bool {
	if commanding[s[i].text] || !isNegation(s[i].text) || s[i].pause || !s.firstPerson(i) {
		return false
	}
	next := i + 1
	for next < j && adverbs[s[next].text] {
		next++
	}
	if wishing[s[next].text] {
		return false
	}
	between := s[i+1 : j]
	if pause := slices.IndexFunc(between, func(w word) bool { return w.pause }); pause >= 0 {
		return !between[:pause+1].any(addressed) // true for "I don't eat meat, can you remember that?"
	}
	return !between.any(addressed) && (next == j || !participles[s[j].text]) // false for "I won't have this stored"
}

// firstPerson reports whether the subject of the words at i is the speaker. A question that
// asks for something does not count.
func (s sentence) firstPerson(i int) bool {
	if i+1 < len(s) && (s[i+1].text == "i" || s[i+1].text == "we") && strings.HasSuffix(s[i].text, "n't") {
		return true // such as "can't I save it?"
	}
	for k := i - 1; k >= 0 && k >= i-4 && !s[k].pause; k-- {
		switch w := s[k].text; {
		case speaker[w]:
			return k == 0 || !auxiliaries[s[k-1].text] && !obliging[s[k-1].text]
		case !auxiliaries[w] && !adverbs[w]:
			return false
		}
	}
	return false
}

func isNegation(w string) bool {
	return negations[w] || strings.HasSuffix(w, "n't") || strings.HasSuffix(w, "'nt")
}

// says reports whether the given words are at i.
func (s sentence) says(i int, words ...string) bool {
	if i < 0 || i+len(words) > len(s) {
		return false
	}
	for k, w := range words {
		if s[i+k].text != w {
			return false
		}
	}
	return true
}

// upTo returns at most n words before i.
func (s sentence) upTo(i, n int) sentence { return s[max(i-n, 0):i] }

func (s sentence) any(of set) bool {
	return slices.ContainsFunc(s, func(w word) bool { return of[w.text] })
}

type set map[string]bool

func words(list string) set {
	s := make(set)
	for w := range strings.FieldsSeq(list) {
		s[w] = true
	}
	return s
}

// These sets contain the words that Classify knows. Contractions with n't are also
// negations.
var (
	negations = words(`not never no nothing none nobody neither nor cannot refuse object forbid forbids forbidden prohibit prohibited
		dont donot doesnt didnt cant wont wouldnt shouldnt couldnt mustnt isnt arent wasnt neednt shant aint havent hasnt`)
	halting    = words("without stop avoid refrain cease quit against skip exclude omit hide disable")
	switching  = words("turn turning switch switching")
	commanding = words("refuse object forbid forbids forbidden prohibit prohibited shouldn't mustn't needn't shan't shouldnt mustnt neednt shant")
	undoing    = words("forget forgetting hesitate fail")
	politely   = words("problem problems worries worry doubt matter thanks")

	keeping = words(`remember remembers remembered remembering save saves saved saving store stores stored storing record records recorded recording
		keep keeps kept keeping retain retains retained retaining storage
		memorize memorizes memorized memorizing memorise memorises memorised memorising`)
	participles = words("remembered saved stored recorded kept retained memorized memorised noted logged persisted archived")
	noting      = words("note noting log logging persist persisting archive archiving learn learning")
	noted       = words("noted logged persisted archived")
	noteWords   = words("note notes")
	jotting     = words("write writing written jot jotting")
	holding     = words("hold hang")
	taking      = words("take taking make making add adding leave leaving in into")
	things      = words("this that these those it any anything what my me our us everything all of")
	down        = words("down")
	none        = words("nothing none nowhere")
	kept        = words("memory memories record records notes")
	leaving     = words("keep keeping leave leaving hold stay stays strike exclude omit")
	from        = words("off from")
	being       = words("is are stays remains")
	forgettable = words("this that it everything all anything what i we")

	puts      = words("add adding save saving store storing put putting keep keeping write writing commit committing record recording enter entering place placing")
	looks     = words("look looking consult consulting check checking recall recalling read reading search searching access accessing refer referring rely relying draw drawing")
	uses      = words("use using apply applying consider considering")
	ignoring  = words("ignore ignoring disregard disregarding")
	recalling = words("recall recalling recalled")
	before    = words("earlier previous prior past old older other last former")
	talks     = words("conversation conversations session sessions chat chats discussion discussions talk talks")
	knowing   = words("know knew remember recall learned learnt noted stored saved")
	machine   = words("leak leaks usage limit limits error errors allocation allocations safety safe footprint consumption address addresses pressure pool corruption management bandwidth db")
	ofMachine = words("much less enough heap shared virtual physical gpu video flash leak leaks leaking allocate allocates allocating in-memory")
	running   = words("run runs running ran")

	speaker     = words("i we i'm i've i'd i'll we're we've we'd we'll im ive")
	auxiliaries = words("do did can could will would am was were are is have has had")
	obliging    = words("should must may shall might ought let's")
	adverbs     = words("really just still even ever also actually honestly simply always usually normally often quite quickly yet particularly necessarily definitely certainly absolutely strongly so")
	wishing     = words(`want wanting wish like need think feel consent agree allow allowing permit permitting authorise authorize approve give giving grant care
		wanted wished agreed allowed permitted approved authorised authorized consented given granted
		comfortable ok okay fine happy sure keen fond willing expect let letting`)
	addressed = words("you your yours yourself u be being been")

	// These two sets make Classify fast, because most words are in none of them.
	beginning = union(halting, keeping, noted, noting, noteWords, jotting, holding, leaving, ignoring, words("off off-the-record between in confidential forget"))
	telling   = union(undoing, keeping, noted, noting, noteWords, jotting, holding, recalling, before, words("but because mind memory memories you"))
)

func union(sets ...set) set {
	all := make(set)
	for _, s := range sets {
		maps.Copy(all, s)
	}
	return all
}
