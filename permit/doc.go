// Package permit is the floor: the permission check that works even if every hook fails.
// The floor checks the final input of every tool call and determines what the call can
// affect. Then the floor lets the call run, asks a person, or denies the call. A hook can
// be stricter than the floor, but never looser.
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
// Each call has a [Zone], from 0 (safe) to 6 (never). A [Mode] has two limits. Calls up to
// the first zone run without a question. Calls up to the second zone need approval. The
// floor denies all others.
//
// The floor determines the zone as follows:
//
//   - File tools: from their paths, after following links.
//   - Shell commands: the floor parses the command. It follows pipes, substitutions,
//     here-documents, functions, variables and wrappers such as env, xargs and sudo. A part
//     that the floor cannot determine is zone 5.
//   - Addresses: the floor also recognises unusual spellings, such as 0x7f.1 for 127.0.0.1.
//   - Other tools: zone 5, unless [Options].Tools describes the tool. The floor knows the
//     tools of package toolbox.
//
// These parts decide. The most severe decision wins. Of equally severe decisions, the
// first in this list wins:
//
//   - A guard ([Guard]) denies. Nobody is asked.
//   - Zone 6 never runs, even with approval, and whatever the rules say.
//   - A protection ([Protections]) is built in. The operator can switch it off by its id.
//   - A rule ([Rule]) denies, asks or allows. An allow rule overrides only the mode. In
//     read-only mode it has no effect.
//   - The mode.
//
// [Floor.Explain] returns, for any call, which part decided and why.
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
// TOOL may contain * and ?.
//
// Commands: the floor compares each command of a line separately, after it has resolved
// variables and wrappers. It compares word by word. A word may contain * and ?, and a * at
// the end matches any number of words. An allow rule must match the whole command. If
// several commands of a line need a rule, rules must allow all of them. An ask or deny rule
// matches every command that begins with its words.
//
// Paths: the floor compares them after following links, relative to the project. **
// matches any number of directories. An ask or deny rule also applies to a command that
// searches a directory, if a matching file exists in that directory now.
//
// Addresses are compared by scheme, host and path. Nested fields have dotted names. A rule
// that can never match is an error.
//
//	allow shell(go test *)
//	deny  shell(git push)             also git push --force origin main
//	ask   *(path:migrations/**)       for reading and for writing
//	deny  *(path:**/*.pem)            for any tool
//	allow fetch(https://*.example.com/*)
//	deny  deploy(target=prod*)
//
// # What it cannot do
//
// The floor reads a command, but cannot limit it. Only a sandbox can. A program of the
// project can do whatever its user can, and the command does not show what the program
// does. So without a sandbox, the zone of every command rises by one
// ([Options].Sandboxed).
//
// The file system may change between the check of a path and the use of the path. So
// tools must open files through [os.Root], as the tools of package toolbox do. A file may
// have other names (hard links). The floor asks before a command changes such a file, but
// does not find the other names. It does not see what an external agent does on another
// machine.
//
// # Concurrency
//
// A [Floor] does not change and is safe for concurrent use.
//
// # Errors
//
// The error of [New] names every mistake in the options. A check never fails: if the floor
// cannot judge a call, it denies the call or treats it as zone 5. The reason says why.
//
// # Testing
//
// [Floor.Explain] takes the name of a tool and its input, so you can test rules with a
// table. The tests of this package use the attacks in testdata/attacks.
package permit
