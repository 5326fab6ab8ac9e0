package memory_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay/memory"
)

// Classify understands the usual ways in which users talk about memory. In doubt it forbids
// access.
//
// SPEC E-08
func TestClassify(t *testing.T) {
	t.Parallel()
	all, noWrite, noRead, nothing := memory.Access{Read: true, Write: true}, memory.Access{Read: true}, memory.Access{Write: true}, memory.Access{}
	for _, test := range []struct {
		rule  string
		want  memory.Access
		texts []string
	}{
		{"what says nothing of it forbids nothing", all, []string{
			"", "Hello.", "No.", "Do not.", "Please fix the off-by-one in the record.", "The parser uses too much memory.", "Do you remember my name?",
			"Never deploy on Fridays.", "I don't eat meat.", "This does not work, and I do not know why.", strings.Repeat("some log line\n", 80_000), strings.Repeat("I remember it. ", 10_000),
		}},
		{"what is to be remembered may be about what is not", all, []string{
			"Remember that I like tea.", "remember that I don't eat meat", "Remember: never deploy on Fridays.", "Remember not to call before nine.", "Please save that I was not there.",
			"Keep in mind that Bob is no longer my manager.", "I don't eat meat, please remember that.", "I don't eat meat, can you remember that?", "We do not use tabs. Remember that.",
			"Don't ask me again, but remember that I like tea.", "No, remember that I like tea.", "No problem, just remember that I like tea.", "No. Remember that I like tea.",
			"Why not remember that I like tea?", "It is not only to be saved, remember it.",
		}},
		{"not to forget is to remember", all, []string{
			"Don't forget that I like tea.", "don't forget that the memory is shared", "Do not forget to save this.", "Never forget what I said.", "Don't let me forget that the keys are in the store.",
			"I never want to forget this, so please keep it.", "Do not hesitate to remember this.", "I don't mind if you remember this.", "Never mind, remember that I like tea.",
		}},
		{"speakers may speak of themselves", all, []string{
			"I don't remember where I put the keys.", "I can't remember.", "I cannot really remember this.", "We do not remember this.", "I really don't remember that.", "I have no memory of it.",
			"I don't recall.", "I never save my work.", "We don't keep records.", "I haven't saved it yet.", "I do not always store it there.", "I no longer remember.", "Why can't I save the file?",
			"I remember nothing of it.", "I often forget that.", "I can't keep up.",
		}},
		{"machines have a memory, too", all, []string{
			"It must not run out of memory.", "There should be no memory leaks.", "Don't allocate memory in the loop.", "Do not use too much memory.", "Don't keep trying.",
		}},
		{"a plain order", noWrite, []string{
			"Please do not remember this.", "Don’t   remember\nthis, please.", "dont remember this", "DON'T MEMORIZE IT", "don't save this: my number is 5", "Never store that I was here in your memory.",
			"don't store my address", "Do not save the following: my pin is 1", "Don't record my name.", "please do not keep a record of this", "Never ever store anything", "please don't keep this", "Do not retain any of it.",
		}},
		{"what is meant by it", noWrite, []string{
			"I don't want you to remember this: my address is 5 Main St.", "I do not wish my address to be stored.", "I don't want a record of this.", "I won't have this stored.", "I don't want this saved.",
			"I do not, and I mean it, want you to remember this.", "I'd rather you didn't remember this.", "I would rather not have this saved.", "I would prefer not to be remembered.", "I don't think you should keep that.",
			"I'm not comfortable with you saving this.", "I do not give you permission to store this.", "I never said you could keep it.", "I forbid storing my address.",
			"You must not remember this.", "You should not save this.", "You're not allowed to remember this", "you may never store it", "Can you not remember this please", "Could we not keep this?", "Let's not save this.",
			"We shouldn't keep this.", "Nothing of this may be remembered.", "None of this should be saved.", "not to be remembered: my cat is Tom", "This must not be stored.", "This mustn't be logged.", "Nobody needs to keep this.", "I do not consent to the storage of my data.", "I haven't allowed saving it.", "I refuse to let you save this.", "I object to you saving this.", "nothing I say here should be kept",
			"No need to remember that my cat is Tom", "Don't bother to remember this.", "Please don't you save that.",
		}},
		{"whatever stands between", noWrite, []string{
			"Do not, under any circumstances, remember this.", "Don't ever, not even for a moment, keep this.", "Do not… remember this.", "Do not (e.g. on disk) store my name.", "Please don't. Remember. This.", "Do not at any time in any way, shape or form remember this.",
			"I like tea.Don't remember this.", "do\u200bn't rem\u200bember this",
		}},
		{"other words for it", noWrite, []string{
			"Don't commit this to memory.", "Do not add this to your memories.", "don't log this", "Do not persist this.", "Don't note that.", "Don't write any of this down.", "Do not take notes.", "don't make a note of it",
			"Off the record: the boss is leaving.", "This is off-the-record.", "Keep this out of your memory.", "Leave my name off the record.", "Forget what I just said.", "Forget that I said this.", "Forget this.", "Remember nothing of this.",
			"Keep none of it.", "Keep this between us.", "This is strictly confidential.", "I tell you this in confidence.", "Stop remembering things.", "Answer without storing my name.", "Please refrain from saving this.", "Avoid keeping a record.", "Don't hold on to this.", "It should not end up in your notes.", "Keep it to yourself.", "Strike that from the record.", "Skip remembering this.",
		}},
		{"in doubt", noWrite, []string{
			"Do not use tabs, and remember that I prefer spaces.", "The cache does not store the keys.", "Don't you remember my name?", "You never remember anything.", "Don't just remember it, tell me.",
		}},
		{"however long it is", noWrite, []string{
			strings.Repeat("some log line\n", 80_000) + "Don't remember any of it.", "Off the record. " + strings.Repeat("some log line\n", 80_000),
		}},
		{"reading", noRead, []string{
			"Answer without using your memory.", "Without your memory: I prefer green tea.", "Ignore your memories and start afresh.", "Ignore everything you know about me.", "ignore what you remember", "Please disregard my notes.",
			"do not use what you know about me", "Don't use anything from earlier conversations.", "Answer without recalling anything.", "don't look up my notes", "Do not look in your memory.", "I don't want you to consult your memory.",
			"Leave aside our previous chats.", "Forget about your memories.",
		}},
		{"both", nothing, []string{
			"Do not use your memory, and don't remember this.", "I don't want you to use your memory.", "No memory, please.", "Do not use memories.", "Without your memory and without remembering this: where is it?",
			"Stop using your memory.", "Disable memory.", "Turn off your memory.", "You must not use your memory here.",
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			for _, text := range test.texts {
				if got := memory.Classify(text); got != test.want {
					t.Errorf("Classify(%.70q) = %+v, want %+v", text, got, test.want)
				}
			}
		})
	}
}
