// Package permit is the floor: it contains what hooks only steer. It looks at the
// final input of every tool call, says how far the call reaches, and lets it run, has
// a person asked, or refuses it. A hook can tighten what the floor says and never
// loosen it.
//
// # Usage
//
//	floor, err := permit.New("/srv/app", &permit.Options{
//		Mode:  permit.Build,
//		Rules: rules, // permit.ParseRule("deny shell(git push *)")
//	})
//	...
//	agent, err := belay.New(model, &belay.Options{Tools: tools, Authorizer: floor})
//
// What a call does is put into a [Zone], from 0 (safe) to 6 (never). A [Mode] says up
// to which zone calls run by themselves and up to which a person is asked; the rest is
// refused. File tools are judged by their paths, with links followed. Shell commands
// are parsed, not searched: pipes, substitutions, here-documents, functions, variables
// and wrappers such as env, xargs and sudo are gone through, and what cannot be
// resolved counts as zone 5. Addresses are recognised in every spelling. Tools that
// nobody described are zone 5: [Options].Tools describes them, those of package toolbox
// excepted.
//
// Asked in this order, and the most severe wins:
//
//   - guards ([Guard]) deny, before anyone is asked;
//   - zone 6 never runs, whoever approves and whatever any rule says;
//   - protections ([Protections]) are built in: the operator can relax each by its id;
//   - rules ([Rule]) deny, ask or allow: an allow lifts what the mode says and nothing
//     else, and nothing in read-only mode;
//   - the mode.
//
// [Floor.Explain] says for any call which of them spoke, and why.
//
// # Rules
//
// A rule is a decision, a tool and, in parentheses, which of its calls are meant:
//
//	rule    = ("allow" | "ask" | "deny") TOOL [ "(" pattern ")" ]
//	pattern = WORD { WORD }                of a tool that runs commands
//	        | GLOB                         of a tool that works on files
//	        | URL                          of a tool that fetches
//	        | "command:" … | "path:" … | "url:" …   of any tool
//	        | FIELD "=" GLOB { "," FIELD "=" GLOB } of any other tool
//
// TOOL may have * and ? in it. The words of a command are compared one by one, with *
// and ? inside; a * at the end stands for any number of words. Every command of a line
// is compared by itself, as it was resolved. A rule that allows must match the whole
// command, and every command of the line that needs it must be allowed by some rule;
// one that asks or denies matches every command that begins like it. Paths are
// compared as they are after links are followed, relative to the project, with ** for
// any number of directories; one that asks or denies also sees what goes through a
// directory that holds such a path now. An address is compared by scheme, host and
// path. Nested fields go by dotted names. A rule that could never match is an error.
//
//	allow shell(go test *)
//	deny  shell(git push)             also git push --force origin main
//	ask   *(path:migrations/**)       whatever way it is written or read
//	deny  *(path:**/*.pem)            whatever tool it is
//	allow fetch(https://*.example.com/*)
//	deny  deploy(target=prod*)
//
// # What it cannot do
//
// Parsing a command is advice, a sandbox is containment: a program of the project can
// do whatever its user can, and what it does is not in the command. Without a sandbox
// the zone of every command rises by one ([Options].Sandboxed). Between the judging of
// a path and its use the file system may change: tools must open files through
// [os.Root], as those of package toolbox do. What a hard link names elsewhere, and what
// an external agent does on its side, cannot be seen from here.
//
// # Concurrency
//
// A [Floor] does not change and is safe for concurrent use.
//
// # Errors
//
// [New] names every mistake in its options. Judging has no errors: what cannot be
// judged is denied or zone 5, and says so.
//
// # Testing
//
// [Floor.Explain] takes the name of a tool and its input, so that rules can be tested
// as a table. The corpus in testdata/attacks is what this package is tested with.
package permit
