import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** The fields of an answer that benches use. */
export interface LoadResponse {
  status: number;
  body: string;
}

const HEAD_END = '\r\n\r\n';

/** Bytes that are read at once. A reader takes them before another connection reads, so all share the buffer. */
const READ_BUFFER = Buffer.allocUnsafe(65_536);

/**
 * One keep-alive HTTP/1.1 connection with one request at a time. It uses little CPU, because it shares the machine
 * with the server: each request is one write, and nothing is allocated to read. Reads answers with a Content-Length only.
 */
export class HttpConnection {
  readonly #socket: Socket;
  #pending: { resolve(response: LoadResponse): void; reject(error: Error): void } | undefined;
  #text = '';
  /** The last request. It was sent whole when its answer came. */
  #request = Buffer.allocUnsafe(4_096);

  private constructor(port: number) {
    const onread = {
      buffer: READ_BUFFER,
      callback: (length: number) => {
        this.#take(READ_BUFFER.toString('latin1', 0, length));
        return true;
      },
    };
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true, onread });
    this.#socket.on('error', (error) => this.#pending?.reject(error));
    this.#socket.on('close', () => this.#pending?.reject(new Error('the server closed the connection')));
  }

  static async open(port: number): Promise<HttpConnection> {
    const connection = new HttpConnection(port);
    await once(connection.#socket, 'connect');
    return connection;
  }

  post(path: string, key: string, body: Buffer): Promise<LoadResponse> {
    return this.#sendBody('POST', path, key, body);
  }

  patch(path: string, key: string, body: Buffer): Promise<LoadResponse> {
    return this.#sendBody('PATCH', path, key, body);
  }

  get(path: string, key: string): Promise<LoadResponse> {
    return this.#send(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}${HEAD_END}`);
  }

  #sendBody(method: string, path: string, key: string, body: Buffer): Promise<LoadResponse> {
    const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}${HEAD_END}`;
    const length = head.length + body.length;
    if (this.#request.length < length) this.#request = Buffer.allocUnsafe(2 * length);
    this.#request.write(head, 'latin1');
    body.copy(this.#request, head.length);
    return this.#send(this.#request.subarray(0, length));
  }

  #send(request: string | Buffer): Promise<LoadResponse> {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#socket.write(request);
    });
  }

  #take(chunk: string): void {
    this.#text += chunk;
    const headEnd = this.#text.indexOf(HEAD_END);
    if (headEnd < 0) return;
    const head = this.#text.slice(0, headEnd);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? Number.NaN);
    const start = headEnd + HEAD_END.length;
    if (this.#text.length < start + length) return;
    const pending = this.#pending;
    this.#pending = undefined;
    const body = this.#text.slice(start, start + length);
    this.#text = '';
    if (Number.isNaN(length)) pending?.reject(new Error('an answer without a length'));
    else pending?.resolve({ status: Number(head.slice(9, 12)), body });
  }

  close(): void {
    this.#pending = undefined;
    this.#socket.destroy();
  }
}
