import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { SECURITY_HEADERS } from './securityHeaders.js';

/** The members of Koa's context that limits and the writer of problems use. */
export type PipelineContext = Pick<
  Context,
  'req' | 'res' | 'state' | 'path' | 'method' | 'headers' | 'status' | 'body'
> & {
  set(field: string, value: string): void;
  response: { get(field: string): string };
};

/** The security headers as name, value, name, value. */
const FIXED_FIELDS: readonly string[] = SECURITY_HEADERS.flat();

/** The context of a request that is served without Koa: the same members, and one write of the whole answer. */
export class CallContext implements PipelineContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly path: string;
  readonly state: Record<string, unknown> = {};
  status = 500;
  body: string | Buffer | undefined;
  readonly #fields = new Map<string, string>();

  constructor(req: IncomingMessage, res: ServerResponse, path: string) {
    this.req = req;
    this.res = res;
    this.path = path;
  }

  get method(): string {
    return this.req.method ?? '';
  }

  get headers(): IncomingMessage['headers'] {
    return this.req.headers;
  }

  get response(): { get(field: string): string } {
    return { get: (field) => this.#fields.get(field) ?? '' };
  }

  set(field: string, value: string): void {
    this.#fields.set(field, value);
  }

  /** Sends the answer, unless the client has disconnected. */
  send(): void {
    const { res, body = '' } = this;
    if (res.destroyed || res.headersSent) return;
    const fields = [...FIXED_FIELDS];
    for (const [name, value] of this.#fields) fields.push(name, value);
    fields.push('Content-Length', String(Buffer.byteLength(body)));
    res.writeHead(this.status, fields);
    res.end(body);
  }
}
