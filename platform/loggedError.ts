/** Causes below an error that are shown. */
const CAUSES_MAX = 3;
const MESSAGE_CHARS_MAX = 500;

interface LoggedError {
  type: string;
  message: string;
  /** Where, without the message that V8 puts in front. */
  stack?: string;
  cause?: unknown;
  [field: string]: unknown;
}

/** Names of Postgres's own objects in its errors: they say where without saying what was sent. */
const DATABASE_FIELDS = ['table', 'column', 'constraint', 'routine'] as const;

/**
 * An error as a line of the log shows it: what kind, where, and why, without what the request said. Drivers put the
 * statement with its values into their message and the refused row into `detail`, and parsers quote what they read;
 * prompts and keys stand in all of these, so an error's own fields are not copied.
 */
export function describeError(error: unknown, depth = 0): unknown {
  if (!(error instanceof Error)) return typeof error === 'object' ? 'not an error' : String(error);
  const fields = error as Error & Record<string, unknown>;
  const described: LoggedError = { type: error.constructor.name, message: messageOf(fields) };
  const { code } = fields;
  if (typeof code === 'number' || (typeof code === 'string' && /^\w{1,64}$/.test(code)))
    described.code = code;
  if (isDatabaseError(fields))
    for (const name of DATABASE_FIELDS) if (typeof fields[name] === 'string') described[name] = fields[name];
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line));
  if (frames && frames.length > 0) described.stack = frames.join('\n');
  if (error.cause !== undefined && depth < CAUSES_MAX)
    described.cause = describeError(error.cause, depth + 1);
  return described;
}

function messageOf(error: Error & Record<string, unknown>): string {
  if (isDatabaseError(error)) return withoutValues(error.message.slice(error.message.lastIndexOf(' - ') + 1));
  if (error instanceof SyntaxError) return withoutValues(error.message);
  return error.message.slice(0, MESSAGE_CHARS_MAX);
}

/** Postgres's errors have a severity beside their SQLSTATE. */
function isDatabaseError(error: Record<string, unknown>): boolean {
  return typeof error.severity === 'string' && typeof error.code === 'string';
}

/** What comes after a colon, and what stands in quotation marks of any kind, is a value or holds one. */
function withoutValues(message: string): string {
  return message
    .replace(/^[- ]+/, '')
    .replace(/:.*$/s, '')
    .replace(/(["'`“”]).*(?:\1|["”])/gs, '…')
    .slice(0, MESSAGE_CHARS_MAX);
}
