// Package wire holds the code that the providers of this repository share. It sends
// request bodies, reads answers of limited length, and turns failures into a
// [belay.ModelError]. It also finds the window and the price of a model.
//
// Code for one vendor belongs in the package of that vendor. In this package, "answer" means
// an HTTP response, and "response" means the output of the model.
package wire
