/**
 * A reason not to start that the user can fix. Its message is one sentence with the cause and the remedy, printed
 * without a stack.
 */
export class StartError extends Error {
  constructor(sentence: string, options?: ErrorOptions) {
    super(sentence, options);
    this.name = 'StartError';
  }
}

/** A wrong use of a command: the message has the fault and the usage. */
export class Misuse extends StartError {}
