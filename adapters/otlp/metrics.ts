/**
 * Requests of metrics in protobuf (opentelemetry-proto: collector/metrics/v1, metrics/v1), read into the shape of
 * OTLP/JSON. Only fields that tokens and costs need are read.
 */
import {
  type Attributed,
  type Fields,
  fields,
  inside,
  newAttributed,
  RESOURCE,
  readAttribute,
  readMessage,
  SCOPE,
  type Scope,
  tag,
} from './protobuf.js';
import { FIXED64, LENGTH, VARINT, WireReader } from './wireReader.js';

interface Point extends Attributed {
  startTimeUnixNano?: bigint;
  timeUnixNano?: bigint;
  asDouble?: number;
  asInt?: bigint;
  sum?: number;
}

const TIMES = {
  [tag(2, FIXED64)]: (reader: WireReader, point: Point) => {
    point.startTimeUnixNano = reader.fixed64();
  },
  [tag(3, FIXED64)]: (reader: WireReader, point: Point) => {
    point.timeUnixNano = reader.fixed64();
  },
};

const readSum = (reader: WireReader, point: Point): void => {
  point.sum = reader.double();
};

const NUMBER_POINT: Fields<Point> = fields<Point>({
  ...TIMES,
  [tag(4, FIXED64)]: (reader, point) => {
    point.asDouble = reader.double();
  },
  [tag(6, FIXED64)]: (reader, point) => {
    point.asInt = BigInt.asIntN(64, reader.fixed64());
  },
  [tag(7, LENGTH)]: readAttribute,
});

const HISTOGRAM_POINT: Fields<Point> = fields<Point>({
  ...TIMES,
  [tag(5, FIXED64)]: readSum,
  [tag(9, LENGTH)]: readAttribute,
});

const EXPONENTIAL_POINT: Fields<Point> = fields<Point>({
  ...TIMES,
  [tag(1, LENGTH)]: readAttribute,
  [tag(5, FIXED64)]: readSum,
});

interface Points {
  dataPoints: Point[];
  aggregationTemporality?: number;
}

const pointsOf = (table: Fields<Point>): Fields<Points> =>
  fields<Points>({
    [tag(1, LENGTH)]: inside(table, newAttributed as () => Point, (points, point) =>
      points.dataPoints.push(point),
    ),
    [tag(2, VARINT)]: (reader, points) => {
      points.aggregationTemporality = reader.uint32();
    },
  });

interface Metric {
  name?: string;
  sum?: Points;
  histogram?: Points;
  exponentialHistogram?: Points;
}

const noPoints = (): Points => ({ dataPoints: [] });

const METRIC: Fields<Metric> = fields<Metric>({
  [tag(1, LENGTH)]: (reader, metric, end) => {
    metric.name = reader.key(reader.end(end));
  },
  [tag(7, LENGTH)]: inside(pointsOf(NUMBER_POINT), noPoints, (metric, sum) => {
    metric.sum = sum;
  }),
  [tag(9, LENGTH)]: inside(pointsOf(HISTOGRAM_POINT), noPoints, (metric, histogram) => {
    metric.histogram = histogram;
  }),
  [tag(10, LENGTH)]: inside(pointsOf(EXPONENTIAL_POINT), noPoints, (metric, histogram) => {
    metric.exponentialHistogram = histogram;
  }),
});

interface ScopeMetrics {
  scope?: Scope;
  metrics: Metric[];
}

const SCOPE_METRICS: Fields<ScopeMetrics> = fields<ScopeMetrics>({
  [tag(1, LENGTH)]: inside(SCOPE, newAttributed as () => Scope, (scopeMetrics, scope) => {
    scopeMetrics.scope = scope;
  }),
  [tag(2, LENGTH)]: inside(
    METRIC,
    (): Metric => ({}),
    (scopeMetrics, metric) => scopeMetrics.metrics.push(metric),
  ),
});

interface ResourceMetrics {
  resource?: Attributed;
  scopeMetrics: ScopeMetrics[];
}

const RESOURCE_METRICS: Fields<ResourceMetrics> = fields<ResourceMetrics>({
  [tag(1, LENGTH)]: inside(RESOURCE, newAttributed, (resourceMetrics, resource) => {
    resourceMetrics.resource = resource;
  }),
  [tag(2, LENGTH)]: inside(
    SCOPE_METRICS,
    (): ScopeMetrics => ({ metrics: [] }),
    (resourceMetrics, scopeMetrics) => resourceMetrics.scopeMetrics.push(scopeMetrics),
  ),
});

interface MetricsRequest {
  resourceMetrics: ResourceMetrics[];
}

const REQUEST: Fields<MetricsRequest> = fields<MetricsRequest>({
  [tag(1, LENGTH)]: inside(
    RESOURCE_METRICS,
    (): ResourceMetrics => ({ scopeMetrics: [] }),
    (request, resourceMetrics) => request.resourceMetrics.push(resourceMetrics),
  ),
});

/** Decodes an ExportMetricsServiceRequest. @throws DomainError invalid_protobuf for malformed bytes. */
export function decodeMetricsRequest(bytes: Uint8Array): MetricsRequest {
  const reader = new WireReader(bytes);
  return readMessage(reader, REQUEST, { resourceMetrics: [] }, reader.length);
}
