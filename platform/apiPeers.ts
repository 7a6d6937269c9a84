import cluster from 'node:cluster';
import { AggregatorRegistry, type Registry } from 'prom-client';

/** A request that was counted by its client's address. */
export interface AddressCharge {
  /** The policy's name. */
  policy: string;
  /** The client's network. */
  network: string;
}

/**
 * Messages between the API processes of a service, through the process that started them. One asks for metrics with an
 * id and gets the metrics of all as `text` with the same id; without `text`, they could not be had.
 */
export type PeerMessage =
  | { type: 'charge'; charge: AddressCharge }
  | { type: 'metrics'; id: number; text?: string };

/** The API processes of a service, as one of them uses them. */
export interface ApiPeers {
  /** Reports a counted request to the others; one that is starting misses it. */
  tellCharge(charge: AddressCharge): void;
  /** Calls `hear` with each request that another process counted. */
  onCharge(hear: (charge: AddressCharge) => void): void;
  /** The metrics of all processes, summed, as text; undefined: one of them does not answer. */
  readMetrics(): Promise<string | undefined>;
}

/** The API processes of this one's cluster; none but itself outside a cluster. `own`: its metrics. */
export function findPeers(own: Registry): ApiPeers {
  if (cluster.isWorker) return new ClusterPeers(own);
  return { tellCharge: () => undefined, onCharge: () => undefined, readMetrics: () => own.metrics() };
}

class ClusterPeers implements ApiPeers {
  readonly #asked = new Map<number, (text: string | undefined) => void>();
  #hear: (charge: AddressCharge) => void = () => undefined;
  #lastId = 0;

  constructor(own: Registry) {
    // Answers the supervisor's questions for this process's metrics.
    new AggregatorRegistry();
    AggregatorRegistry.setRegistries(own);
    process.on('message', (message: PeerMessage | string) => {
      if (typeof message === 'string') return;
      if (message.type === 'charge') this.#hear(message.charge);
      if (message.type !== 'metrics') return;
      this.#asked.get(message.id)?.(message.text);
      this.#asked.delete(message.id);
    });
  }

  tellCharge(charge: AddressCharge): void {
    this.#send({ type: 'charge', charge });
  }

  onCharge(hear: (charge: AddressCharge) => void): void {
    this.#hear = hear;
  }

  readMetrics(): Promise<string | undefined> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      this.#asked.set(id, resolve);
      this.#send({ type: 'metrics', id });
    });
  }

  #send(message: PeerMessage): void {
    if (process.connected) process.send?.(message);
  }
}
