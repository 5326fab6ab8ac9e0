// Package toolbox has the stock tools of a coding agent: read, write, edit,
// list, glob, grep and shell.
//
// # Usage
//
// The file tools work below one directory, the project, through [os.Root]:
//
//	root, err := os.OpenRoot("/srv/app")
//	...
//	agent, err := belay.New(model, &belay.Options{Tools: toolbox.Files(root)})
//
// [All] adds the shell and takes options; [Shell] is the shell alone. A path is
// relative to the project, or absolute and inside it. Symbolic links are followed
// as long as they stay inside, and nothing leads out: neither "..", nor a link,
// nor a link that is put in place while a call is under way. A hard link is the
// file itself, wherever else that file has a name: it can be read. It cannot be
// changed from here, because a changed file is a new one in its place. The shell
// is not held by any of this: hooks and the floor say what it may do, and
// [ShellOptions].Confine runs its commands in a sandbox.
//
// write and edit refuse a file that the session has not read, or that has changed
// since it did, so that nothing is overwritten unseen. What was read is
// remembered by content, within bounds and for as long as the process lives; the
// answer to a lost memory is to read again. glob, grep and list leave out what
// .gitignore files leave out, and .git.
//
// A changed file keeps its owner and its mode, without setuid and setgid. One that
// cannot keep its owner, or that the user of the process may not write, is refused.
//
// Commands inherit the environment without the variables that look like secrets:
// see [ShellOptions]. What does not print in the name of a file is quoted in texts.
//
// [AskUser] is an extension, with a tool by which the model asks the person a question;
// [Directives] are what people can type with a slash in front.
//
// What a tool answers in text is for the model. For people there is render data,
// as JSON of one of the View types; its "kind" says of which.
//
// # Concurrency
//
// The tools are safe for concurrent use, by many sessions too. read, list, glob
// and grep run side by side and may be run again after a crash. write, edit and
// shell are serial, and are not run again: a call that was under way when its
// process ended may come back hours later, when repeating it would undo what a
// person has done since. The model is told instead. The tools of one call of
// Files or All change one file at a time.
//
// # Errors
//
// A failure is a result, with a class: invalid (the call makes no sense),
// not_found, denied (outside the project, not read before, or not to be confined), failed, timeout,
// aborted, unavailable (no shell). Paths in messages are relative to the project.
//
// # Testing
//
// Tools are values: call them with a [belay.Invocation], or take a turn with
// provider/scripted in a temporary directory, as the example does.
package toolbox
