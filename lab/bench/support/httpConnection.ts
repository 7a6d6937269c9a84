import { connect, type Socket } from 'node:net';

/** The fields of an answer that benches use. */
export interface LoadResponse {
  status: number;
  body: string;
}

const HEAD_END = '\r\n\r\n';

/**
 * One keep-alive HTTP/1.1 connection with one request at a time. It uses little CPU, because it shares the machine
 * with the server. Reads answers with a Content-Length only.
 */
export class HttpConnection {
  readonly #socket: Socket;
  #pending: { resolve(response: LoadResponse): void; reject(error: Error): void } | undefined;
  #text = '';

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => this.#take(chunk));
    socket.on('error', (error) => this.#pending?.reject(error));
    socket.on('close', () => this.#pending?.reject(new Error('the server closed the connection')));
  }

  static open(port: number): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        resolve(new HttpConnection(socket));
      });
    });
  }

  post(path: string, key: string, body: Buffer): Promise<LoadResponse> {
    return this.#send(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}${HEAD_END}`,
      body,
    );
  }

  patch(path: string, key: string, body: Buffer): Promise<LoadResponse> {
    return this.#send(
      `PATCH ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}${HEAD_END}`,
      body,
    );
  }

  get(path: string, key: string): Promise<LoadResponse> {
    return this.#send(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}${HEAD_END}`);
  }

  #send(head: string, body?: Buffer): Promise<LoadResponse> {
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject };
      this.#socket.cork();
      this.#socket.write(head, 'latin1');
      if (body) this.#socket.write(body);
      this.#socket.uncork();
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
