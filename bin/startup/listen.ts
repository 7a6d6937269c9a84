import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../../platform/config.js';
import { StartError } from '../../platform/startError.js';

/**
 * Takes requests at the address of the settings; resolves with the port.
 * @throws StartError when the address cannot be had.
 */
export function listen(server: Server, config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(
        new StartError(
          `The API cannot listen on ${config.host}:${config.port} (${error.code}): set PORT or HOST.`,
          { cause: error },
        ),
      );
    });
    server.listen(config.port, config.host, () => resolve((server.address() as AddressInfo).port));
  });
}
