// Produces and consumes in a group with kafkajs; prints what was read, one JSON array.
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')

const [bootstrap, topic, group] = process.argv.slice(2)
const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.ERROR })

async function main() {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  const sent = []
  for (const compression of [CompressionTypes.None, CompressionTypes.GZIP]) {
    const messages = Array.from({ length: 50 }, (_, i) => ({ key: 'k', value: `${compression}-${i}` }))
    await producer.send({ topic, acks: -1, compression, messages })
    sent.push(...messages.map((m) => m.value))
  }
  await producer.disconnect()

  const consumer = kafka.consumer({ groupId: group })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const read = []
  await new Promise((resolve, reject) => {
    consumer
      .run({
        eachMessage: async ({ message }) => {
          read.push(message.value.toString())
          if (read.length === sent.length) resolve()
        },
      })
      .catch(reject)
  })
  await consumer.disconnect()
  console.log(JSON.stringify({ sent, read }))
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
