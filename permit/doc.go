// Package permit is the floor: the permission check that holds even if every hook fails.
// It checks the final input of every tool call, determines how far the call reaches, and
// lets it run, asks a person, or denies it. A hook can be stricter than the floor, but
// never looser.
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
// Each call has a [Zone], from 0 (safe) to 6 (never). A [Mode] sets up to which zone calls
// run without a question, and up to which zone a person is asked; the rest is denied. File
// tools are judged by their paths, and links are followed. Shell commands are parsed: the
// analysis follows pipes, substitutions, here-documents, functions, variables and wrappers
// such as env, xargs and sudo. What it cannot determine counts as zone 5. Addresses are
// recognised in every spelling. Tools without a description are zone 5: describe them in
// [Options].Tools, except those of package toolbox, which are known.
//
// These decide, in this order, and the most severe decision wins:
//
//   - guards ([Guard]) deny, and nobody is asked;
//   - zone 6 never runs, even with approval, and whatever the rules say;
//   - protections ([Protections]) are built in: the operator can relax each by its id;
//   - rules ([Rule]) deny, ask or allow: an allow overrides only the mode, and nothing in
//     read-only mode;
//   - the mode.
//
// [Floor.Explain] returns for any call which of them decided, and why.
//
// # Rules
//
// A rule has a decision, a tool and, in parentheses, a pattern that selects calls:
//
//	rule    = ("allow" | "ask" | "deny") TOOL [ "(" pattern ")" ]
//	pattern = WORD { WORD }                of a tool that runs commands
//	        | GLOB                         of a tool that works on files
//	        | URL                          of a tool that fetches
//	        | "command:" … | "path:" … | "url:" …   of any tool
//	        | FIELD "=" GLOB { "," FIELD "=" GLOB } of any other tool
//
// TOOL may contain * and ?. The words of a command are compared one by one, and may
// contain * and ?, too; a * at the end matches any number of words. Each command of a line
// is compared separately, after variables and wrappers are resolved. An allow rule must
// match the whole command, and every command of the line that needs it must be allowed by
// some rule. An ask or deny rule matches every command that begins like it. Paths are
// compared after links are followed, relative to the project; ** matches any number of
// directories. An ask or deny rule also applies to a command that searches a directory
// which contains a matching file now. An address is compared by scheme, host and path.
// Nested fields have dotted names. A rule that could never match is an error.
//
//	allow shell(go test *)
//	deny  shell(git push)             also git push --force origin main
//	ask   *(path:migrations/**)       for any way to read or write it
//	deny  *(path:**/*.pem)            for any tool
//	allow fetch(https://*.example.com/*)
//	deny  deploy(target=prod*)
//
// # What it cannot do
//
// Parsing a command is advice; a sandbox is containment. A program of the project can do
// whatever its user can, and the command does not show it. Without a sandbox the zone of
// every command rises by one ([Options].Sandboxed). The file system may change between the
// check of a path and its use, so tools must open files through [os.Root], as those of
// package toolbox do. The floor cannot see other names of a file (hard links), and what an
// external agent does on its side.
//
// # Concurrency
//
// A [Floor] does not change and is safe for concurrent use.
//
// # Errors
//
// The error of [New] names every mistake in the options. A check returns no errors: a call
// that cannot be judged is denied or zone 5, and the reason says why.
//
// # Testing
//
// [Floor.Explain] takes the name of a tool and its input, so you can test rules with a
// table. The tests of this package use the attacks in testdata/attacks.
package permit
