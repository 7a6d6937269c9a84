import { type DestinationStream, destination, type Logger, pino } from 'pino';
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
    options.destination ?? destination({ fd: 1, sync: true }),
  );
}
