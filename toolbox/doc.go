// Package toolbox has the standard tools of a coding agent: read, write, edit, list, glob,
// grep and shell.
//
// # Usage
//
// The file tools work below one directory, the project, through [os.Root]:
//
//	root, err := os.OpenRoot("/srv/app")
//	...
//	agent, err := belay.New(model, &belay.Options{
//		Extensions: []belay.Extension{toolbox.New(root, nil)}, Authorizer: floor,
//	})
//
// The tools are an extension, which also adds text to the prompt. [Options] can leave out
// the shell, or all tools that change something. [Extension.Only] returns an extension
// with some of the tools. [Shell] makes only the shell tool.
//
// A path is relative to the project, or absolute and inside the project. The file tools
// follow symbolic links that stay inside. They never leave the project: not by "..", not
// by a link, and not by a link that is created during a call. They can read a hard link
// to a file outside. They cannot change that file, because write and edit replace files
// instead of changing them. The shell has no such limits: hooks and the floor (the
// permission check) decide what it may do. [ShellOptions].Confine can run its commands in
// a sandbox.
//
// write and edit refuse to change a file that the session has not read, or that has
// changed since then. So nothing is overwritten unseen. The process remembers the content
// of files that were read, up to a limit. If it has forgotten a file, the model must read
// the file again. glob, grep and list skip .git and the files that .gitignore excludes.
//
// A changed file keeps its owner and its mode, but not setuid and setgid. The tools
// refuse to change a file that could not keep its owner, or that the user of the process
// cannot write.
//
// Commands inherit the environment without the variables that look like secrets, see
// [ShellOptions]. In texts, file names with unprintable characters are quoted.
//
// [AskUser] returns an extension with a tool that asks the user a question. [Directives]
// are slash commands for users.
//
// The text of a result is for the model. To show a result to people, use its render data.
// It is the JSON form of one of the View types, and its "kind" names the type.
//
// # Concurrency
//
// The tools are safe for concurrent use, even by many sessions. read, list, glob and grep
// run in parallel and may run again after a crash. write, edit and shell run one at a
// time and are not repeated. A call that was interrupted by a crash may be resumed hours
// later, and repeating the call could undo a person's work. So the model gets a message
// about the interruption instead. Tools from the same call of New change one file at a
// time.
//
// # Errors
//
// A failure is a result with a class: invalid (bad input), not_found, denied (outside the
// project, not read before, or rejected by the sandbox), failed, timeout, aborted, or
// unavailable (no shell). Paths in messages are relative to the project.
//
// # Testing
//
// Tools are values. Call them with a [belay.Invocation], or run a turn with
// provider/scripted in a temporary directory, as the example does.
package toolbox
