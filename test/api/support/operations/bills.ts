import type { TestOrganization } from '../../../support/api.js';
import { uploadBill } from '../../../support/bills.js';
import { ADMIN_KEYS } from '../../../support/fetchedBills.js';
import { make, markerOf, type Operation, type OperationsPlace, randomName, unknownId } from './operation.js';

const READ = { scope: 'billing:read', workspace: 'refused' } as const;
const WRITE = { scope: 'billing:write', workspace: 'refused' } as const;
const IMPORTS = '/api/v1/billing-imports';
const CONNECTIONS = '/api/v1/billing-connections';
const PROVIDER_KEYS = '/api/v1/provider-keys';

const billOf = (owner: TestOrganization) =>
  `date,model,token_class,quantity,amount_usd\n2026-03-10,${markerOf(owner)},input,${parseInt(randomName().slice(0, 8), 16)},1\n`;

/** Parts of the one account of the loopback provider: an account can be connected once. */
const connectionOf = (owner: TestOrganization) => ({
  provider: 'openai',
  name: markerOf(owner),
  credentials: { admin_key: ADMIN_KEYS.openai },
  settings: { account: 'org-loop', scope: { projects: [`proj_${randomName()}`] } },
});

const makeImport = async ({ api }: OperationsPlace, owner: TestOrganization): Promise<string> => {
  const fields = { provider: 'openai', account: markerOf(owner) };
  const { status, body } = await uploadBill(api, billOf(owner), fields, {
    key: owner.adminKey,
    filename: `${markerOf(owner)}.csv`,
  });
  if (status !== 202) throw new Error(`the upload answered ${status}: ${JSON.stringify(body)}`);
  return body.import_id;
};

const makeConnection = (place: OperationsPlace, owner: TestOrganization) =>
  make(place, owner, CONNECTIONS, connectionOf(owner));

/** A request about a connection. */
const ofConnection = (
  method: Operation['method'],
  path: string,
  access: Operation['access'],
  status: number,
  json?: (owner: TestOrganization) => object,
): Operation => ({
  method,
  path,
  access,
  status,
  ids: { id: unknownId('con') },
  request: async (place, owner) => ({
    params: { id: (await makeConnection(place, owner)).id },
    ...(json ? { json: json(owner) } : {}),
  }),
});

const keysOf = (owner: TestOrganization) => ({
  items: [{ provider: 'openai', provider_key_id: markerOf(owner), name: markerOf(owner), status: 'active' }],
});

const multipart = (fields: Record<string, string>, file: string) => {
  const boundary = `----${randomName()}`;
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  parts.push(
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="bill.csv"\r\ncontent-type: text/csv\r\n\r\n${file}\r\n`,
  );
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    data: `${parts.join('')}--${boundary}--\r\n`,
  };
};

/** Bills: files, connections, and the keys that they name. */
export const BILL_OPERATIONS: Record<string, Operation> = {
  createBillingImport: {
    method: 'POST',
    path: IMPORTS,
    access: WRITE,
    status: 202,
    request: async (_place, owner) => ({
      body: multipart({ provider: 'openai', account: markerOf(owner) }, billOf(owner)),
    }),
  },
  listBillingImports: {
    method: 'GET',
    path: IMPORTS,
    access: READ,
    status: 200,
    request: async (place, owner) => {
      await makeImport(place, owner);
      return {};
    },
  },
  getBillingImport: {
    method: 'GET',
    path: `${IMPORTS}/{id}`,
    access: READ,
    status: 200,
    ids: { id: unknownId('imp') },
    request: async (place, owner) => ({ params: { id: await makeImport(place, owner) } }),
  },
  createBillingConnection: {
    method: 'POST',
    path: CONNECTIONS,
    access: WRITE,
    status: 201,
    request: async (_place, owner) => ({ json: connectionOf(owner) }),
  },
  listBillingConnections: {
    method: 'GET',
    path: CONNECTIONS,
    access: READ,
    status: 200,
    request: async (place, owner) => {
      await makeConnection(place, owner);
      return {};
    },
  },
  getBillingConnection: ofConnection('GET', `${CONNECTIONS}/{id}`, READ, 200),
  updateBillingConnection: ofConnection('PATCH', `${CONNECTIONS}/{id}`, WRITE, 200, (owner) => ({
    name: `${markerOf(owner)} renamed`,
    paused: true,
  })),
  deleteBillingConnection: ofConnection('DELETE', `${CONNECTIONS}/{id}`, WRITE, 204),
  testBillingConnection: ofConnection('POST', `${CONNECTIONS}/{id}/test`, WRITE, 200),
  startBillingSync: ofConnection('POST', `${CONNECTIONS}/{id}/sync`, WRITE, 202),
  listBillingSyncs: ofConnection('GET', `${CONNECTIONS}/{id}/runs`, READ, 200),
  getBillingSync: {
    method: 'GET',
    path: `${CONNECTIONS}/{id}/runs/{run_id}`,
    access: READ,
    status: 200,
    ids: { id: unknownId('con'), run_id: unknownId('run') },
    request: async (place, owner) => {
      const { id, sync } = await makeConnection(place, owner);
      return { params: { id, run_id: sync.id } };
    },
  },
  listProviderKeys: {
    method: 'GET',
    path: PROVIDER_KEYS,
    access: READ,
    status: 200,
    request: async ({ api }, owner) => {
      await fetch(api.baseUrl + PROVIDER_KEYS, {
        method: 'PUT',
        headers: { authorization: `Bearer ${owner.adminKey}`, 'content-type': 'application/json' },
        body: JSON.stringify(keysOf(owner)),
      });
      return {};
    },
  },
  putProviderKeys: {
    method: 'PUT',
    path: PROVIDER_KEYS,
    access: WRITE,
    status: 200,
    request: async (_place, owner) => ({ json: keysOf(owner) }),
  },
};
