import { writeSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';

export interface LoggerOptions {
  /** Which process speaks: start, api or worker. */
  name: string;
  level: string;
  /** Fields of the running request or activity (request id, organization), asked for at each line. */
  context?: () => object;
  /** Where the lines go; stdout when absent. */
  destination?: DestinationStream;
}

/** Lines that wait to be written, at most. */
const WAITING_BYTES_MAX = 1_048_576;
/** The pause before a pipe whose reader is slow is tried again. */
const FULL_PIPE_WAIT_MS = 10;

/** Fields that never appear in a log line, at the top or one step down. */
const SECRET_FIELDS = [
  'authorization',
  'payload',
  'tool_input',
  'tool_output',
  'password',
  'secret',
  'key',
  'databaseUrl',
];

/**
 * One JSON object a line: `level` as a word, `time` in RFC 3339 UTC. Written synchronously, so the last line before
 * an exit is not lost.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { context } = options;
  return pino(
    {
      level: options.level,
      base: { name: options.name },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      serializers: { err: describeError, error: describeError },
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [...SECRET_FIELDS, ...SECRET_FIELDS.map((field) => `*.${field}`), 'req.headers'],
        censor: '[redacted]',
      },
      ...(context ? { mixin: context } : {}),
    },
    options.destination ?? lastingDestination(),
  );
}

/**
 * A file descriptor, stdout when absent, which may be a terminal that was closed, a pipe without a reader or a file on a
 * full disk. None of them ends the process: what cannot be written is tried again with the next line, and beyond a
 * limit new lines are dropped. A pipe that is only full is waited for.
 */
export function lastingDestination(fd = 1, write: typeof writeSync = writeSync): DestinationStream {
  let waiting: Buffer = Buffer.alloc(0);
  return {
    write(text: string): void {
      const line = Buffer.from(text);
      if (waiting.length + line.length <= WAITING_BYTES_MAX)
        waiting = waiting.length === 0 ? line : Buffer.concat([waiting, line]);
      try {
        while (waiting.length > 0) waiting = waiting.subarray(writeOrWait(() => write(fd, waiting)));
      } catch {
        // Tried again with the next line.
      }
    },
  };
}

function writeOrWait(write: () => number): number {
  try {
    return write();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_WAIT_MS);
    return 0;
  }
}

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
 * all of these can contain prompts and keys, so an error's own fields are not copied.
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

/** Text after a colon or in quotation marks is a value or contains one. */
function withoutValues(message: string): string {
  return message
    .replace(/^[- ]+/, '')
    .replace(/:.*$/s, '')
    .replace(/(["'`“”]).*(?:\1|["”])/gs, '…')
    .slice(0, MESSAGE_CHARS_MAX);
}
