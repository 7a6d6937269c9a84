import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Tells answers that wait behind another one on their connection (pipelining, RFC 9112 9.3.2) when it closes. Node tells
 * `close` to the answer that is being sent alone: the others never end, and whatever is held until they do would be held
 * for good.
 */
export function closeQueuedAnswers(server: Server): void {
  const waiting = new WeakMap<Socket, Set<ServerResponse>>();
  server.prependListener('request', (request, response) => {
    // The first answer has its connection already.
    if (response.socket !== null) return;
    const { socket } = request;
    const known = waiting.get(socket);
    const queue = known ?? new Set<ServerResponse>();
    queue.add(response);
    // Its turn has come: from now on Node tells it.
    response.once('socket', () => queue.delete(response));
    if (known) return;
    waiting.set(socket, queue);
    socket.once('close', () => {
      for (const queued of queue) {
        queued.destroy();
        queued.emit('close');
      }
      queue.clear();
    });
  });
}
