import { writeSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';

export interface LoggerOptions {
  /** Name of the process: start, api or worker. */
  name: string;
  level: string;
  /** Destination of the lines; absent: stdout, those of one turn of the event loop together. */
  destination?: DestinationStream;
}

/** Most bytes of lines that wait to be written. */
const WAITING_BYTES_MAX = 1_048_576;
/** Milliseconds before a full pipe is tried again. */
const FULL_PIPE_WAIT_MS = 10;

/** Fields that never appear in a log line, at the top level or one level down. */
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
 * One JSON object a line: `level` as a word, `time` in RFC 3339 UTC. The last line before an exit is not lost.
 */
export function createLogger(options: LoggerOptions): Logger {
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
    },
    options.destination ?? processDestination(),
  );
}

let ofProcess: DestinationStream | undefined;

function processDestination(): DestinationStream {
  ofProcess ??= gatheringDestination();
  return ofProcess;
}

/**
 * Writes to a file descriptor (default: stdout) that may become a closed terminal, a pipe without a reader or a file on
 * a full disk. None of them ends the process: unwritten lines are tried again with the next line, and beyond a limit
 * new lines are dropped. For a full pipe it waits.
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

/** The begin of an ordinary line. */
const INFO = '{"level":"info"';

/**
 * Writes the ordinary lines of one turn of the event loop together: a process that serves thousands of requests a second
 * would else write to its log as often. Other lines are written at once, with those before them, and so are all at the
 * end of the process.
 */
export function gatheringDestination(
  destination: DestinationStream = lastingDestination(),
): DestinationStream {
  let lines = '';
  const flush = () => {
    if (lines === '') return;
    const text = lines;
    lines = '';
    destination.write(text);
  };
  process.on('exit', flush);
  return {
    write(line: string): void {
      if (lines === '') setImmediate(flush);
      lines += line;
      if (!line.startsWith(INFO)) flush();
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

/** Most causes of an error that are shown. */
const CAUSES_MAX = 3;
const MESSAGE_CHARS_MAX = 500;

interface LoggedError {
  type: string;
  message: string;
  /** The stack without V8's leading message. */
  stack?: string;
  cause?: unknown;
  [field: string]: unknown;
}

/** Fields of Postgres's errors that name its objects and contain no sent data. */
const DATABASE_FIELDS = ['table', 'column', 'constraint', 'routine'] as const;

/**
 * An error in the form of a log line: kind, place and reason, without data of the request. Drivers include the
 * statement with its values in their message and the refused row in `detail`, and parsers quote their input; all of
 * these can contain prompts and keys, so an error's fields are not copied.
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

/** A message without text after a colon or in quotation marks, which is a value or contains one. */
function withoutValues(message: string): string {
  return message
    .replace(/^[- ]+/, '')
    .replace(/:.*$/s, '')
    .replace(/(["'`“”]).*(?:\1|["”])/gs, '…')
    .slice(0, MESSAGE_CHARS_MAX);
}
