import pg from 'pg';
import { type DatabaseOptions, openDatabase } from '../../../db/client.js';
import { loginOf, makeLogin } from '../../../db/login.js';
import { migrate } from '../../../db/migrate.js';
import { loadConfig } from '../../../platform/config.js';
import { startPostgres } from '../../../platform/embedded/postgres.js';
import { seedPrices } from '../../../usecases/pricing/priceSeed.js';
import { environmentOf, type TestDatabase } from '../../support/database.js';
import { removeCluster } from '../../support/postgres.js';
import { makeTestFolder } from '../../support/testFolder.js';
import { startTcpProxy, type TcpProxy } from './tcpProxy.js';

/** A separate Postgres of a test file, which may be killed and restarts on the same port with its data. */
export interface KillablePostgres {
  /** In front of the server; `database` connects through it, `superuser` directly. */
  proxy: TcpProxy;
  database: TestDatabase;
  /** Ends the server as a crash does, and waits until it is gone. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Ends all of it and removes its folder. */
  close(): Promise<void>;
}

/** Starts it, migrated and with prices. It waits for the disk as the product's does: it is there to be killed. */
export async function startKillablePostgres(
  name: string,
  options: Pick<DatabaseOptions, 'poolMax' | 'statementTimeoutMs' | 'waitLimitMs'>,
): Promise<KillablePostgres> {
  const dataDir = makeTestFolder(name);
  const start = () =>
    startPostgres({
      dataDir,
      cacheDir: loadConfig().cacheDir,
      settings: { shared_buffers: '32MB', max_wal_size: '256MB' },
    });
  let server = await start();
  const { url } = server;
  await migrate(url);
  await makeLogin(url, loginOf(server.loginUrl));
  const proxy = await startTcpProxy(server.port);
  const throughProxy = new URL(server.loginUrl);
  throughProxy.port = String(proxy.port);
  const database = openDatabase({ url: throughProxy.href, applicationName: 'test', ...options });
  await seedPrices(database);
  const superuser = new pg.Pool({ connectionString: url, max: 4 });
  superuser.on('error', () => undefined);
  const closeConnections = async () => {
    await database.close();
    await superuser.end();
  };
  return {
    proxy,
    database: { url, environment: environmentOf(url), database, superuser, close: closeConnections },
    kill: async () => {
      process.kill(server.pid, 'SIGKILL');
      await server.exited;
    },
    restart: async () => {
      server = await start();
    },
    close: async () => {
      await closeConnections();
      await proxy.close();
      await server.stop();
      removeCluster(dataDir, server.directory);
    },
  };
}
