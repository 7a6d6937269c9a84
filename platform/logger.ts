import { writeSync } from 'node:fs';
import { type DestinationStream, type Logger, pino } from 'pino';
import { describeError } from './loggedError.js';

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

/** What never stands in a log line, at the top or one step down. */
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
